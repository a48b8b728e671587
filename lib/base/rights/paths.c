/* paths.c - see paths.h. The constants are those of Linux's interface (landlock(7)), written here
 * because the headers of old distributions lack the newer ones. */
#include "lib/base/rights/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE = 444, ADD_RULE = 445, RESTRICT = 446, GET_VERSION = 1, BELOW_A_PATH = 1 };

enum { /* rights to files; REFER from version 2 on, TRUNCATE from 3, DEVICE_CALLS from 5 */
    EXECUTE = 1, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_FOLDER = 1 << 3,
    REMOVE = 3 << 4 /* folders, files */, MAKE = 127 << 6 /* all kinds */, REFER = 1 << 13,
    TRUNCATE = 1 << 14, DEVICE_CALLS = 1 << 15,
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_CALLS
};
enum { ABSTRACT_SOCKETS = 1, SIGNALS = 2 }; /* scopes, from version 6 on */

struct rules { uint64_t files, network, scopes; };
struct rule { uint64_t allowed; int32_t folder; }; /* Linux reads 12 bytes */

static uint64_t handled(int abi)
{
    return EXECUTE | WRITE_FILE | READ_FILE | READ_FOLDER | REMOVE | MAKE |
           (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) | (abi >= 5 ? DEVICE_CALLS : 0);
}

int paths_begin(struct paths *paths)
{
    long abi = syscall(CREATE, NULL, 0, GET_VERSION);
    struct rules rules = {handled((int)abi), 0, abi >= 6 ? ABSTRACT_SOCKETS | SIGNALS : 0};
    /* An old system refuses fields that it does not know, unless they are 0. */
    *paths = (struct paths){abi < 1 ? -1 : (int)syscall(CREATE, &rules, sizeof rules, 0), (int)abi,
                            0};
    return paths->fd < 0 ? -1 : 0;
}

void paths_allow(struct paths *paths, const char *path, unsigned rights)
{
    struct stat info;
    uint64_t allowed = READ_FILE | READ_FOLDER;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            paths->error = errno;
        return;
    }
    if (rights & PATHS_WRITE)
        allowed |= WRITE_FILE | REMOVE | MAKE | REFER | TRUNCATE;
    if (rights & PATHS_RUN)
        allowed |= EXECUTE;
    if (!fstat(fd, &info) && !S_ISDIR(info.st_mode))
        allowed &= OF_FILES;
    struct rule rule = {allowed & handled(paths->abi), fd};
    /* fails for a pipe, which needs no rule */
    (void)syscall(ADD_RULE, paths->fd, BELOW_A_PATH, &rule, 0);
    close(fd);
}

int paths_apply(struct paths *paths)
{
    int bad = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(RESTRICT, paths->fd, 0);
    close(paths->fd);
    return bad ? -1 : 0;
}
