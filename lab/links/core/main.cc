// links-core: see commands.h. If something is missing, it prints one sentence on standard error and ends with status 1.
#include <cstdio>
#include <string_view>

#include "commands.h"
#include "system.h"

namespace links {

void applySetting(PipeSettings& settings, const std::string& key, double value) {
  const auto nanoseconds = static_cast<Nanoseconds>(value);
  if (key == "rateBytesPerSec")
    settings.rateBytesPerSec = value;
  else if (key == "queueBytes")
    settings.queueBytes = static_cast<int64_t>(value);
  else if (key == "delay")
    settings.delay = nanoseconds;
  else if (key == "jitter")
    settings.jitter = nanoseconds;
  else if (key == "distribution")
    settings.distribution = value == 0 ? Distribution::uniform : Distribution::normal;
  else if (key == "reorder")
    settings.reorder = value != 0;
  else if (key == "lossGood")
    settings.lossGood = value;
  else if (key == "lossBad")
    settings.lossBad = value;
  else if (key == "enterBad")
    settings.enterBad = value;
  else if (key == "leaveBad")
    settings.leaveBad = value;
  else if (key == "cut")
    settings.cut = value != 0;
  else if (key == "mtu")
    settings.mtu = static_cast<uint32_t>(value);
  else if (key == "icmp")
    settings.icmp = value != 0;
  else
    throw Failure("a pipe has no setting \"" + key + "\"");
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace links

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const std::span<char*> rest(argv + (argc > 1 ? 2 : 1), argv + argc);
  try {
    if (command == "serve") return links::serve();
    if (command == "enter") return links::enter(rest);
    if (command == "probe") return links::probe(rest);
    if (command == "selftest") return links::selftest();
    throw links::Failure("usage: links-core serve | enter PID FD COMMAND ... | probe KIND ... | selftest");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
