// The commands of links-core, and helpers for the lines that it reads and prints.
#pragma once
#include <span>
#include <string>

#include "pipe.h"

namespace links {

/** Sets the field named `key`. Times are in nanoseconds, switches are 0 or 1, distribution is 0 (uniform) or 1
 * (normal). Throws Failure. */
void applySetting(PipeSettings& settings, const std::string& key, double value);

/** A JSON string. */
std::string quoted(const std::string& text);

int serve();
/** enter PID NAMESPACE_FD COMMAND ...: runs a command in the namespaces of process PID and ends as the command ends. */
int enter(std::span<char*> arguments);
/** probe KIND ...: senders and receivers that measure a path (probe.cc). */
int probe(std::span<char*> arguments);
/** selftest: checks of Pipe, Emulator and packet.h without I/O (selftest.cc). Prints `N passed, N failed`. */
int selftest();

}  // namespace links
