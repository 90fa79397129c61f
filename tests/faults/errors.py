# SPDX-License-Identifier: Apache-2.0
"""Which error which system call can answer with: what cases are made of."""
import fcntl
import os

NEVER = set(
    # Cannot fail but by a wrong argument, or do not return.
    """exit exit_group getpid gettid getppid getuid geteuid getgid getegid getsid umask set_tid_address
    set_robust_list rt_sigprocmask rt_sigaction rt_sigreturn arch_prctl rseq lseek uname sigaltstack
    clock_gettime gettimeofday times getpgrp getpgid restart_syscall sched_yield getrandom sysinfo futex""".split())

ERRORS = {}


def rule(errors, calls):
    for call in calls.split():
        ERRORS[call] = errors.split()


rule("EMFILE ENOMEM EPERM EIO EINTR", "open openat openat2")
rule("EMFILE ENOMEM EPERM", """memfd_create fsopen fsmount fspick open_tree pidfd_open pidfd_getfd socket socketpair pipe
    pipe2 eventfd eventfd2 signalfd signalfd4 epoll_create1 timerfd_create inotify_init1 bpf userfaultfd""")
rule("EMFILE", "dup dup2 dup3")
rule("EIO EINTR ENOMEM", "read pread64 readv preadv preadv2")
rule("EIO ENOMEM", "getdents64 readlink readlinkat fstat stat lstat newfstatat statx statfs fstatfs getcwd")
rule("EIO EPERM ENOMEM", "access faccessat faccessat2 chdir fchdir chroot")
rule("EIO ENOSPC EINTR ENOMEM EPERM", "write pwrite64 writev pwritev pwritev2 copy_file_range sendfile")
rule("EIO ENOSPC EPERM", "ftruncate fallocate")
rule("ENOMEM", "mmap mremap mprotect munmap madvise brk mincore")
rule("ENOMEM EPERM EAGAIN", "mlock2 mlockall")
rule("ENOMEM EPERM EAGAIN ENOSPC", "clone clone3 fork vfork")
rule("ENOMEM EPERM ENOSPC EIO", "mount move_mount fsconfig mount_setattr pivot_root umount umount2 unshare setns")
rule("EIO ENOSPC EPERM ENOMEM", "mkdir mkdirat mknod mknodat symlink symlinkat link linkat rename renameat renameat2")
rule("EIO EPERM ENOMEM EBUSY", "unlink unlinkat rmdir")
rule("EIO EPERM ENOSPC ENOMEM", """chown fchown lchown fchownat chmod fchmod fchmodat fchmodat2 setxattr fsetxattr utimensat
    name_to_handle_at""")
rule("EIO EPERM ENOMEM", "ioctl keyctl getxattr listxattr")
rule("EPERM", "prctl")
rule("EINTR ENOMEM EIO", "fsync fdatasync")
rule("EINTR ENOMEM EIO ENOLCK", "flock")
rule("ESRCH EPERM EIO", "ptrace")
rule("EPERM ESRCH", "kcmp")
rule("EAGAIN ENOMEM", "timer_create")
rule("EINVAL", "timer_settime timer_delete")
rule("EACCES ENOSPC ENOMEM ENOENT", "inotify_add_watch")
rule("EINVAL", "inotify_rm_watch")
rule("ESTALE EPERM EOPNOTSUPP", "open_by_handle_at")
rule("ENOSYS EPERM EINTR", "process_mrelease")
rule("EPERM", "kill tgkill tkill pidfd_send_signal")
rule("EINTR", "wait4 waitid nanosleep clock_nanosleep rt_sigtimedwait pause rt_sigsuspend")
rule("EINTR ENOMEM", "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_ctl")
rule("EINTR ENOMEM EPERM EMFILE", "sendmsg sendto recvmsg recvfrom connect accept accept4 bind listen setsockopt getsockopt shutdown")
rule("ENOMEM EIO EPERM EMFILE", "execve execveat")
rule("EIO EINTR", "close")


# By command: the others only fail for a descriptor that is not open.
FCNTL = {
    10: ["ENOMEM"],  # F_SETSIG
    15: ["ESRCH", "ENOMEM"],  # F_SETOWN_EX
    fcntl.F_DUPFD: ["EMFILE"],
    fcntl.F_DUPFD_CLOEXEC: ["EMFILE"],
    fcntl.F_SETLK: ["EAGAIN", "ENOMEM"],
    fcntl.F_SETLKW: ["EINTR", "ENOMEM"],
    1031: ["EPERM", "ENOMEM"],  # F_SETPIPE_SZ
    1033: ["EPERM", "EBUSY"],  # F_ADD_SEALS
}


# PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_SET_CHILD_SUBREAPER
PRCTL_NEVER = (2, 3, 4, 15, 16, 23, 36)


def errors_of(call, what):
    if call in NEVER or (call == "prctl" and what in PRCTL_NEVER):
        return []
    if call == "fcntl":
        return FCNTL.get(what, [])
    if call in ("open", "openat", "openat2") and what & os.O_CREAT:
        return ERRORS[call] + ["ENOSPC"]
    return ERRORS.get(call, ["ENOMEM", "EPERM"])
