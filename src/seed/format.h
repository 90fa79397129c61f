/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed: the bytes of a seed's descriptor; docs/seed-format.md says what each of them means.
 *
 * The same bytes are in memory, on disk and on the wire: a header, then sections, each a table of
 * entries of one size, in the byte order of little-endian machines. A longer entry than is known
 * here is one of a later version, whose new members come last and may be ignored. All numbers of
 * entries ("index") count from 0 within their table; LR_SEED_NONE is no entry.
 *
 * The structures hold no padding: what a compiler would leave unset would be in the file.
 */
#ifndef LR_SEED_FORMAT_H
#define LR_SEED_FORMAT_H

#include <stdint.h>

#define LR_SEED_MAGIC       "LEANSEED"
#define LR_SEED_PAGES_MAGIC "LEANPAGE"
#define LR_SEED_VERSION     3
#define LR_SEED_PAGE        4096U
#define LR_SEED_NONE        UINT32_MAX
/* Five levels of page tables; the kernel says what this machine has. */
#define LR_SEED_TOP (UINT64_C(1) << 56)
#define LR_SEED_MOST                                                                               \
	(UINT64_C(256) << 20) /* of a descriptor: it is in memory while somebody continues it */
#define LR_SEED_PIDS  (1U << 22)
#define LR_SEED_NAME  16
#define LR_SEED_XSAVE 16384U

struct lr_seed_header {
	char magic[8];
	uint32_t version, size;  /* size: of this header */
	uint64_t length, pages;  /* bytes of the descriptor, and of the file of pages */
	uint8_t id[16];          /* also in the file of pages */
	uint32_t sections, zero; /* how many there are */
	uint64_t sum;            /* lr_hash of all the rest */
};

/* The first page of the file of pages; the rest of that page is zero. */
struct lr_seed_pages_header {
	char magic[8];
	uint32_t version, page;
	uint64_t length;
	uint8_t id[16];
};

#define LR_SEED_REQUIRED 1U

struct lr_seed_section {
	uint32_t type, flags;
	uint32_t stride, zero; /* bytes from entry to entry */
	uint64_t count;        /* entries; they follow, padded to a multiple of eight bytes */
};

struct lr_seed_range {
	uint32_t first, count;
};

struct lr_seed_bytes {
	uint64_t at, length;
};

enum lr_seed_type {
	LR_SEED_HOST = 1,
	LR_SEED_STRING, /* characters; entries of one byte, the last one is a NUL */
	LR_SEED_BYTES,
	LR_SEED_PROCESS,
	LR_SEED_THREAD,
	LR_SEED_OBJECT,
	LR_SEED_MM,
	LR_SEED_VMA,
	LR_SEED_RUN,
	LR_SEED_BACKING,
	LR_SEED_FILE,
	LR_SEED_FD,
	LR_SEED_CHANNEL,
	LR_SEED_WATCH,
	LR_SEED_FS,
	LR_SEED_CRED,
	LR_SEED_LIMIT,
	LR_SEED_ACTION,
	LR_SEED_SIGNAL,
	LR_SEED_TIMER,
	LR_SEED_TMPFS,
	LR_SEED_NODE,
	LR_SEED_TERMINAL,
	LR_SEED_CHANGED,
	LR_SEED_ENDPOINT,
	LR_SEED_TYPES
};

#define LR_SEED_X86_64 62 /* as in ELF */

struct lr_seed_host {
	uint32_t machine, page;
	uint64_t xfeatures; /* of XCR0: state components that the machine of a child has to have */
	uint32_t xsave, release;
	uint32_t vdso, vvar; /* bytes */
	uint64_t vdso_sum;
	int64_t realtime, monotonic, boottime; /* ns, when it was taken */
};

#define LR_SEED_ZOMBIE 1U
#define LR_SEED_TILES  2U /* it has asked for AMX's tiles (ARCH_REQ_XCOMP_PERM) */

struct lr_seed_process {
	uint32_t pid, parent; /* parent: index, of one further up */
	uint32_t pgid, sid;   /* 0: of a process outside of the seed */
	uint32_t flags, status;
	uint32_t mm, fs;
	struct lr_seed_range threads, fds, limits, actions, signals, timers;
	int32_t oom_score_adj;
	uint32_t personality, dumpable, subreaper;
	int64_t itimers[6]; /* real, virtual, prof: interval and what is left, in µs */
};

enum lr_seed_reg { /* as ptrace(2) has them */
		   LR_SEED_R15,
		   LR_SEED_R14,
		   LR_SEED_R13,
		   LR_SEED_R12,
		   LR_SEED_RBP,
		   LR_SEED_RBX,
		   LR_SEED_R11,
		   LR_SEED_R10,
		   LR_SEED_R9,
		   LR_SEED_R8,
		   LR_SEED_RAX,
		   LR_SEED_RCX,
		   LR_SEED_RDX,
		   LR_SEED_RSI,
		   LR_SEED_RDI,
		   LR_SEED_ORIG_RAX,
		   LR_SEED_RIP,
		   LR_SEED_CS,
		   LR_SEED_EFLAGS,
		   LR_SEED_RSP,
		   LR_SEED_SS,
		   LR_SEED_FS_BASE,
		   LR_SEED_GS_BASE,
		   LR_SEED_DS,
		   LR_SEED_ES,
		   LR_SEED_FS_SELECTOR,
		   LR_SEED_GS_SELECTOR,
		   LR_SEED_REGS
};

struct lr_seed_thread {
	uint32_t tid, cred;
	uint64_t regs[LR_SEED_REGS];
	struct lr_seed_bytes xsave;
	uint64_t mask;
	struct lr_seed_range signals;
	uint64_t altstack, altstack_size;
	uint32_t altstack_flags, rseq_size;
	uint64_t rseq;
	uint32_t rseq_signature, pdeathsig;
	uint64_t robust_list, robust_size;
	uint64_t clear_tid;
	uint64_t timer_slack;
	uint32_t policy, priority;
	int32_t nice;
	uint32_t sched_flags;
	char name[LR_SEED_NAME];
	uint32_t mce_kill;    /* 0: as the machine has it; 1: late, 2: early */
	uint32_t speculation; /* a byte for each LR_SEED_SPECULATION that the program has switched:
				 what PR_GET_SPECULATION_CTRL says; else 0 */
};

/* By its number to prctl(2): bypass of stores, indirect branches, and the flush of the L1 cache. */
#define LR_SEED_SPECULATIONS 3U

struct lr_seed_mm {
	uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack;
	uint64_t arg_start, arg_end, env_start, env_end;
	struct lr_seed_bytes auxv;
	uint32_t exe, thp_disable; /* thp_disable: what PR_GET_THP_DISABLE says */
	struct lr_seed_range vmas, runs;
	uint32_t flags;
	uint32_t keys; /* bit k, 1 to 15: protection key k is allocated (pkey_alloc(2)) */
};

#define LR_SEED_MERGES          1U /* all of it: PR_SET_MEMORY_MERGE */
#define LR_SEED_LOCKS           2U /* what is mapped later: MCL_FUTURE */
#define LR_SEED_MDWE            4U /* PR_MDWE_REFUSE_EXEC_GAIN */
#define LR_SEED_MDWE_NO_INHERIT 8U
/* What membarrier(2) may be asked for: globally, privately, and that with SYNC_CORE, and with RSEQ. The kernel's commands
 * by which a process registers for it, and then asks for it. */
#define LR_SEED_BARRIERS            4U
#define LR_SEED_BARRIER(k)          (16U << (k))
#define LR_SEED_BARRIER_REGISTER(k) (4U << 2 * (k))
#define LR_SEED_BARRIER_ASK(k)      (2U << 2 * (k))
#define LR_SEED_MM_FLAGS            255U
#define LR_SEED_KEYS                0xfffeU

/* What a range of addresses is backed by. */
enum lr_seed_vma_kind {
	LR_SEED_ANON = 1, /* private anonymous memory */
	LR_SEED_PRIVATE,  /* private mapping of a file: `backing` */
	LR_SEED_SHARED,   /* shared mapping of a file: `backing` */
	LR_SEED_SHARES,   /* shared mapping of `object` */
	LR_SEED_COPY,     /* private mapping of `object` */
	LR_SEED_VDSO,
	LR_SEED_VVAR
};

#define LR_SEED_GROWSDOWN   0x001U
#define LR_SEED_NORESERVE   0x002U
#define LR_SEED_DONTFORK    0x004U
#define LR_SEED_WIPEONFORK  0x008U
#define LR_SEED_DONTDUMP    0x010U
#define LR_SEED_MERGEABLE   0x020U
#define LR_SEED_HUGEPAGE    0x040U
#define LR_SEED_NOHUGEPAGE  0x080U
#define LR_SEED_LOCKED      0x100U
#define LR_SEED_LOCKONFAULT 0x200U
#define LR_SEED_SEALED      0x400U
#define LR_SEED_VMA_FLAGS   0x7ffU

struct lr_seed_vma {
	uint64_t start, end, offset; /* offset: in file or object */
	uint32_t kind, prot, flags;
	uint32_t backing, object, zero;
};

/* Pages that lie one behind the other, in memory (or an object) as in the file of pages. */
struct lr_seed_run {
	uint64_t start, pages, at;
};

enum lr_seed_object_kind { LR_SEED_MEMFD = 1, LR_SEED_SHARED_ANON };

/* As fcntl(2) has them. */
#define LR_SEED_SEAL_SEAL         0x01U
#define LR_SEED_SEAL_SHRINK       0x02U
#define LR_SEED_SEAL_GROW         0x04U
#define LR_SEED_SEAL_WRITE        0x08U
#define LR_SEED_SEAL_FUTURE_WRITE 0x10U
#define LR_SEED_SEAL_EXEC         0x20U /* Linux 6.3 */
#define LR_SEED_SEALS             0x3fU

struct lr_seed_object {
	uint32_t kind, seals;
	uint64_t size;
	uint32_t name, flags;
	struct lr_seed_range runs;
};

/* A file that is mapped, and by what it is known again. */
struct lr_seed_backing {
	uint32_t path, writable; /* writable: opened for writing, too */
	uint64_t size, sum;      /* sum: of the first and the last page of the file */
};

enum lr_seed_file_kind {
	LR_SEED_REGULAR = 1, /* also directories, and devices that any container has */
	LR_SEED_STDIO,    /* what the new process gets; args: which, 0 to 2; 1: that opened again */
	LR_SEED_PIPE,     /* channel; by its flags one end, both (O_RDWR) or none (O_PATH) */
	LR_SEED_SOCKET,   /* one of a pair: channel, args[0] which end, args[1] its type */
	LR_SEED_EVENTFD,  /* args: count, semaphore */
	LR_SEED_TIMERFD,  /* args: clock, ticks, settime flags, value and interval in ns */
	LR_SEED_SIGNALFD, /* args: mask */
	LR_SEED_EPOLL,    /* watches */
	LR_SEED_INOTIFY,  /* watches */
	LR_SEED_MEMFD_FILE,    /* object; args: 1 (0: the rest says nothing), mode, owner, group */
	LR_SEED_TERMINAL_FILE, /* the one of LR_SEED_TERMINAL */
	LR_SEED_ENDPOINT_FILE, /* args[0]: which endpoint */
	LR_SEED_PIDFD          /* args[0]: id of a process of the seed */
};

struct lr_seed_file {
	uint32_t kind, flags; /* flags: of open(2), and O_ASYNC */
	uint64_t pos;
	uint32_t path, object, channel, signal; /* signal: of F_SETSIG */
	uint64_t args[5];
	struct lr_seed_range watches;
	uint32_t owner_kind, owner; /* who gets it: of F_SETOWN_EX */
};

enum lr_seed_owner { LR_SEED_NOBODY, LR_SEED_OF_THREAD, LR_SEED_OF_PROCESS, LR_SEED_OF_GROUP };

struct lr_seed_fd {
	uint32_t number, file, cloexec, zero;
};

/* Bits of a channel's `ends`: the end is open in the seed; and of a pair of sockets, after shutdown(2):
 * it reads no more, or writes no more. */
#define LR_SEED_END(end)      (1U << (end))
#define LR_SEED_NO_READ(end)  (4U << 2 * (end))
#define LR_SEED_NO_WRITE(end) (8U << 2 * (end))

#define LR_SEED_OPTIONS_MOST  20 /* room for all of enum lr_seed_option, and for more */

/*
 * A pipe, or a pair of sockets; `data` is what waits to be read: of a pipe its bytes, of a pair
 * what end 0 and end 1 have yet to read, each message a uint32_t length and that many bytes.
 */
struct lr_seed_channel {
	uint32_t capacity, ends;
	struct lr_seed_bytes data[2];
	uint32_t uid, gid; /* of a pipe: its owner; of a pair: who made it (SO_PEERCRED) */
	uint32_t mode;     /* of a pipe */
	uint32_t zero;
	/* Of each end of a pair, as an endpoint has them. */
	uint32_t set[2];
	int32_t options[2][LR_SEED_OPTIONS_MOST];
};

/* Numbers of inotify's watches are come by, one after the other: the highest ones of all inotify files
 * together are no more than this. */
#define LR_SEED_WATCH_NUMBERS 65536U
#define LR_SEED_WATCH_MASK                                                                         \
	0x84000fffU /* all events, IN_ONESHOT and IN_EXCL_UNLINK: what stays of a call */

/* epoll: descriptor number, events, data, and the file; inotify: its number, path, mask, and as
 * data the type of the file (S_IFMT), sorted by number, and no file. */
struct lr_seed_watch {
	uint32_t number, file;
	uint32_t path, mask;
	uint64_t data;
};

struct lr_seed_fs {
	uint32_t cwd, root, umask, zero;
};

struct lr_seed_cred {
	uint32_t uids[4], gids[4]; /* real, effective, saved, file system */
	uint64_t inheritable, permitted, effective, bounding, ambient;
	uint32_t securebits, no_new_privs;
	struct lr_seed_bytes groups; /* uint32_t each */
};

struct lr_seed_limit {
	uint64_t soft, hard;
};

struct lr_seed_action {
	uint32_t signal, zero;
	uint64_t handler, flags, restorer, mask;
};

struct lr_seed_signal {
	uint8_t info[128]; /* siginfo_t */
};

struct lr_seed_timer {
	int32_t id;
	uint32_t clock, signal, notify;
	uint32_t tid, zero;
	uint64_t value_pointer;
	int64_t interval, left; /* ns */
};

#define LR_SEED_ROOT 1U

/* A tmpfs of the container's own, by its place in config.json. With LR_SEED_ROOT, in the last one
 * alone: what the upper layer of its root ("/") has, in place of what the layers below it have. */
struct lr_seed_tmpfs {
	uint32_t path, flags;
	struct lr_seed_range nodes; /* the first one is its root */
};

/* Below the root: as deep, and with paths as long (from there), as all callers can go. */
#define LR_SEED_DEPTH  128U
#define LR_SEED_PATH   4095U

#define LR_SEED_OPAQUE 1U /* a directory that has nothing of the layers below */

/* What is in one: a file, directory, link, named pipe or socket. In the root also what is not there
 * any more: its mode is LR_SEED_WHITEOUT, and nothing else of it counts. */
struct lr_seed_node {
	uint32_t parent, name; /* parent: index, of a directory further up; a root has none */
	uint32_t target;       /* of a symbolic link */
	uint32_t same;         /* the file further up that this is another name of; then the rest
				  says nothing */
	uint32_t mode, uid, gid, flags; /* mode: with its type */
	int64_t atime, mtime;           /* ns */
	uint64_t size;
	struct lr_seed_bytes attributes; /* struct lr_seed_attribute, and again */
	struct lr_seed_range runs;       /* of its contents, from 0 on */
};

#define LR_SEED_WHITEOUT   0020000U /* S_IFCHR, as in overlayfs */

#define LR_SEED_ATTRIBUTES 65536U

/* Followed by the name, with its NUL, and the value, and padded to a multiple of four. */
struct lr_seed_attribute {
	uint32_t name, value; /* bytes */
};

/* A file of the root that processes use, that the container had changed, and that is not in the seed:
 * so that errors can say why a child has another one. */
struct lr_seed_changed {
	uint32_t path, zero;
};

#define LR_SEED_RELAYED   1U /* it ends lines with a newline alone, by who made it */
#define LR_SEED_EXCLUSIVE 2U /* nobody else opens it (TIOCEXCL) */

/* The container's own; a seed has one at the most. */
struct lr_seed_terminal {
	uint32_t flags;
	uint32_t session;    /* whose controlling terminal it is: its leader; 0: nobody's */
	uint32_t foreground; /* process group; 0: its session leader's */
	uint32_t iflag, oflag, cflag, lflag, ispeed, ospeed; /* as termios2 has them */
	uint32_t rows, columns, width, height;
	uint32_t zero;
	uint8_t cc[24]; /* the kernel has 19 of them */
};

#define LR_SEED_MPTCP 262U /* a protocol, as IPPROTO_TCP: not in all headers */

/* How a socket that is of no pair comes back. */
enum lr_seed_endpoint_state {
	LR_SEED_LISTENS = 1,
	LR_SEED_CLOSED /* it was connected, and is not any more: nothing of where to */
};

/* What was set of such a socket; socket.h says what each of them is to the kernel. */
enum lr_seed_option {
	LR_SEED_REUSEADDR,
	LR_SEED_REUSEPORT,
	LR_SEED_V6ONLY,
	LR_SEED_KEEPALIVE,
	LR_SEED_KEEPIDLE,
	LR_SEED_KEEPINTVL,
	LR_SEED_KEEPCNT,
	LR_SEED_NODELAY,
	LR_SEED_DEFER_ACCEPT,
	LR_SEED_FASTOPEN,
	LR_SEED_USER_TIMEOUT,
	LR_SEED_SNDBUF, /* as it is given to setsockopt(2) */
	LR_SEED_RCVBUF,
	LR_SEED_PASSCRED,
	LR_SEED_FREEBIND,
	LR_SEED_PASSPIDFD, /* this one, and those that follow, are of pairs alone */
	LR_SEED_PASSSEC,
	LR_SEED_RCVTIMEO, /* in ms, as the next one */
	LR_SEED_SNDTIMEO,
	LR_SEED_OPTIONS
};
_Static_assert(LR_SEED_OPTIONS <= LR_SEED_OPTIONS_MOST, "there is room for all");

/* A socket that is of no pair. Files have theirs in the order of this table, one each. */
struct lr_seed_endpoint {
	uint32_t state, domain, type, protocol; /* as socket(2) takes them */
	struct lr_seed_bytes address;           /* as bind(2) takes it */
	uint32_t backlog, set;                  /* set: bit n: options[n] counts */
	int32_t options[LR_SEED_OPTIONS_MOST];
	uint32_t uid, gid; /* of the socket; of AF_UNIX: as whom its peers see it */
	uint32_t dir;      /* of one with a file: where that is, without links; else "" */
	uint32_t mode;     /* of the file, with owners of its own */
	uint32_t file_uid, file_gid;
	char congestion[LR_SEED_NAME]; /* of TCP, where it is not its network namespace's own */
};

#define LR_SEED_FIXED(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "fixed format")
LR_SEED_FIXED(lr_seed_header, 64);
LR_SEED_FIXED(lr_seed_pages_header, 40);
LR_SEED_FIXED(lr_seed_section, 24);
LR_SEED_FIXED(lr_seed_host, 64);
LR_SEED_FIXED(lr_seed_process, 144);
LR_SEED_FIXED(lr_seed_thread, 368);
LR_SEED_FIXED(lr_seed_mm, 136);
LR_SEED_FIXED(lr_seed_vma, 48);
LR_SEED_FIXED(lr_seed_run, 24);
LR_SEED_FIXED(lr_seed_object, 32);
LR_SEED_FIXED(lr_seed_backing, 24);
LR_SEED_FIXED(lr_seed_file, 88);
LR_SEED_FIXED(lr_seed_fd, 16);
LR_SEED_FIXED(lr_seed_channel, 224);
LR_SEED_FIXED(lr_seed_watch, 24);
LR_SEED_FIXED(lr_seed_fs, 16);
LR_SEED_FIXED(lr_seed_cred, 96);
LR_SEED_FIXED(lr_seed_limit, 16);
LR_SEED_FIXED(lr_seed_action, 40);
LR_SEED_FIXED(lr_seed_signal, 128);
LR_SEED_FIXED(lr_seed_timer, 48);
LR_SEED_FIXED(lr_seed_tmpfs, 16);
LR_SEED_FIXED(lr_seed_node, 80);
LR_SEED_FIXED(lr_seed_changed, 8);
LR_SEED_FIXED(lr_seed_terminal, 80);
LR_SEED_FIXED(lr_seed_endpoint, 160);
LR_SEED_FIXED(lr_seed_attribute, 8);

#endif
