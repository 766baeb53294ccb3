// links-core enter: joins the namespaces of a running links-core and runs a command there, with this process's standard
// streams and open descriptors. It passes signals on. The command dies with this process, and this process ends as the
// command does.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "commands.h"
#include "system.h"

namespace links {
namespace {

pid_t commandPid = 0;

/** Skips signals of a terminal, because a terminal sends them to the command too. */
void passOn(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0 && commandPid > 0) kill(commandPid, signal);
}

int openNamespace(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) failWithErrno("the links are gone: cannot open " + path);
  return fd;
}

bool sameAsOwn(int fd, const std::string& own) {
  struct stat a{}, b{};
  return fstat(fd, &a) == 0 && stat(own.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void joinNamespaces(const std::string& pid, const std::string& networkFd) {
  const std::string folder = "/proc/" + pid + "/";
  const int user = openNamespace(folder + "ns/user"), network = openNamespace(folder + "fd/" + networkFd);
  const int pids = openNamespace(folder + "ns/pid"), mounts = openNamespace(folder + "ns/mnt");
  std::error_code noFolder;
  const auto here = std::filesystem::current_path(noFolder);
  if (!sameAsOwn(user, "/proc/self/ns/user") && setns(user, CLONE_NEWUSER) < 0)
    failWithErrno("cannot join the user namespace");
  if (setns(network, CLONE_NEWNET) < 0) failWithErrno("cannot join the network namespace");
  if (setns(pids, CLONE_NEWPID) < 0) failWithErrno("cannot join the PID namespace");
  if (setns(mounts, CLONE_NEWNS) < 0) failWithErrno("cannot join the mount namespace");
  if (!noFolder && chdir(here.c_str()) < 0) failWithErrno("cannot return to " + here.string());
}

[[noreturn]] void becomeCommand(std::span<char*> command, const sigset_t& mask) {
  dieWithParent();
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> words(command.begin(), command.end());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int why = errno;
  std::perror(words[0]);
  _exit(why == ENOENT ? 127 : 126);
}

}  // namespace

int enter(std::span<char*> arguments) {
  if (arguments.size() < 3) throw Failure("usage: links-core enter PID FD COMMAND ...");
  dieWithParent();
  joinNamespaces(arguments[0], arguments[1]);
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  sigset_t passed, before;
  sigemptyset(&passed);
  for (const int signal : kSignals) sigaddset(&passed, signal);
  sigprocmask(SIG_BLOCK, &passed, &before);
  commandPid = fork();
  if (commandPid < 0) failWithErrno("cannot start a process (the links are gone?)");
  if (commandPid == 0) becomeCommand(arguments.subspan(2), before);
  struct sigaction action{};
  action.sa_sigaction = passOn;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (waitpid(commandPid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  prctl(PR_SET_DUMPABLE, 0);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace links
