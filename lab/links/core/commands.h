// What links-core can be asked to do, and the words of its lines.
#pragma once
#include <span>
#include <string>

#include "pipe.h"

namespace links {

/** Sets the field of the same name; times are nanoseconds, switches 0 or 1, distribution 0 uniform or 1 normal. Throws
 * Failure. */
void applySetting(PipeSettings& settings, const std::string& key, double value);

/** A JSON string. */
std::string quoted(const std::string& text);

int serve();
/** enter PID NAMESPACE_FD COMMAND ...: runs a command in the namespaces that process PID keeps; ends as the command
 * ends. */
int enter(std::span<char*> arguments);
/** probe KIND ...: senders and receivers that measure a path (probe.cc). */
int probe(std::span<char*> arguments);
/** selftest: checks of Pipe, Emulator and packet.h without I/O (selftest.cc). Prints `N passed, N failed`. */
int selftest();

}  // namespace links
