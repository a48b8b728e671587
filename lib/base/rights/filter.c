/* filter.c - see filter.h. A refused call fails with an error and does not kill: libraries fall
 * back to other calls. SPEC_ALLOW keeps the processor's speculation as it is: before Linux 5.16 a
 * filter turned off the bypass of stores, and all measured times would have become longer. */
#include "lib/base/rights/filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Numbers that old headers lack; they are the same on every machine. */
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4
#endif

struct refusal {
    unsigned group; /* FILTER_ATTACKS: in every filter */
    uint32_t call;
    uint16_t error;
};

static const struct refusal refusals[] = {
    {FILTER_ATTACKS, SYS_ptrace, EPERM},
    {FILTER_ATTACKS, SYS_process_vm_readv, EPERM},
    {FILTER_ATTACKS, SYS_process_vm_writev, EPERM},
    {FILTER_ATTACKS, SYS_pidfd_getfd, EPERM},
    {FILTER_ATTACKS, SYS_io_uring_setup, EPERM},
    {FILTER_ATTACKS, SYS_keyctl, EPERM},
    {FILTER_ATTACKS, SYS_unshare, EPERM},
    {FILTER_ATTACKS, SYS_setns, EPERM},
    {FILTER_ATTACKS, SYS_mount, EPERM},
    {FILTER_ATTACKS, SYS_bpf, EPERM},
#ifdef SYS_fork
    {FILTER_PROCESSES, SYS_fork, EPERM},
    {FILTER_PROCESSES, SYS_vfork, EPERM},
#endif
    {FILTER_PROCESSES, SYS_clone3, ENOSYS}, /* a filter cannot see its flags; clone is tried next */
    {FILTER_PROGRAMS, SYS_execve, EPERM},
    {FILTER_PROGRAMS, SYS_execveat, EPERM},
    {FILTER_SOCKETS, SYS_socket, EPERM},
    {FILTER_CUTS, SYS_truncate, EPERM},
    {FILTER_ESCAPES, SYS_setsid, EPERM}, /* at the time limit the tool kills the process group */
    {FILTER_ESCAPES, SYS_setpgid, EPERM},
    {FILTER_ESCAPES, SYS_shmget, EPERM},
    {FILTER_ESCAPES, SYS_memfd_create, EPERM},
};

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IS(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1) /* if not equal, skips one */
#define ANSWER(code) BPF_STMT(BPF_RET | BPF_K, (code))
#define REFUSED(code) (SECCOMP_RET_ERRNO | (code))

/* LOAD(args[i]) loads the low half of an argument, because both known machines (x86_64, aarch64)
 * are little-endian. */
static const struct sock_filter other_numbers[] = {
    ANSWER(SECCOMP_RET_KILL_PROCESS), LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* x32: other numbers */
    ANSWER(REFUSED(ENOSYS))}; /* no kill: a tracer that injects errors makes the number -1 */
static const struct sock_filter terminal[] = {
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3), LOAD(args[1]),
    IS(TIOCSTI), ANSWER(REFUSED(EPERM)), LOAD(nr)};
static const struct sock_filter only_threads[] = {
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4), LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0), ANSWER(REFUSED(EPERM)),
    ANSWER(SECCOMP_RET_ALLOW)};
static const struct sock_filter only_local[] = {
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4), LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0), ANSWER(REFUSED(EPERM)),
    ANSWER(SECCOMP_RET_ALLOW)};
static_assert(2 * sizeof *terminal + sizeof other_numbers + sizeof terminal +
                      sizeof only_threads + sizeof only_local +
                      (2 * sizeof refusals / sizeof *refusals + 1) * sizeof *terminal <=
                  FILTER_LENGTH * sizeof *terminal, "room for the filter");

static unsigned short put(struct sock_filter *code, unsigned short at,
                          const struct sock_filter *filter, size_t bytes)
{
    memcpy(code + at, filter, bytes);
    return (unsigned short)(at + bytes / sizeof *filter);
}

unsigned short filter_write(struct sock_filter code[FILTER_LENGTH], unsigned groups)
{
    struct utsname system;
    uname(&system);
    const int intel = !strcmp(system.machine, "x86_64"), arm = !strcmp(system.machine, "aarch64");
    const struct sock_filter known[] = {
        LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                             (uint32_t)(intel ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64), 1, 0)};
    unsigned short n = put(code, 0, known, sizeof known);
    n = put(code, n, other_numbers, sizeof other_numbers);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *refusal = &refusals[i];
        const struct sock_filter refuse[] = {IS(refusal->call), ANSWER(REFUSED(refusal->error))};
        if (refusal->group == FILTER_ATTACKS || refusal->group & groups)
            n = put(code, n, refuse, sizeof refuse);
    }
    n = put(code, n, terminal, sizeof terminal);
    if (groups & FILTER_INTERNET)
        n = put(code, n, only_local, sizeof only_local);
    if (groups & FILTER_PROCESSES)
        n = put(code, n, only_threads, sizeof only_threads);
    code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    return intel || arm ? n : 0;
}

int filter_apply(unsigned groups)
{
    struct sock_filter code[FILTER_LENGTH];
    struct sock_fprog filter = {filter_write(code, groups), code};
    if (!filter.len || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) ? -1 : 0;
}
