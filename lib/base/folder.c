/* folder.c - see folder.h. Files go to a temporary folder, which is renamed when all are complete.
 * A reader thus sees the whole folder or none. rename() refuses a target that has files, so nothing
 * is overwritten. */
#include "lib/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"

int folder_check_new(const char *path, const char *option, struct err *e)
{
    DIR *folder = opendir(path);
    int n = 0;
    if (!folder)
        return errno == ENOENT ? 0 : err_set(e, EXIT_CANNOT_CREATE, "%s %s: %s", option, path,
                                             strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));)
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(folder);
    return n ? err_set(e, EXIT_CANNOT_CREATE, "%s %s: expected a folder that is new or empty, got "
                       "one with files: name another", option, path) : 0;
}

/* "a/b/" -> "a/.b.tmp" */
static char *temp_name(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return mem_format("%.*s.%.*s.tmp", (int)at, path, (int)(n - at), path + at);
}

static void clear(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *entry; d && (entry = readdir(d));)
        unlinkat(dirfd(d), entry->d_name, 0); /* does not remove folders, including "." and ".." */
    if (d)
        closedir(d);
}

static void close_folder(struct folder *folder)
{
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder->path);
    free(folder->temp);
    *folder = (struct folder){.lock = -1};
}

int folder_begin(struct folder *folder, const char *path, struct err *e)
{
    *folder = (struct folder){mem_text(path), temp_name(path), -1};
    if (file_make_folder(folder->temp, e) ||
        (folder->lock = file_lock_folder(folder->temp, e)) < 0) {
        close_folder(folder);
        return -1;
    }
    clear(folder->temp);
    return 0;
}

int folder_commit(struct folder *folder, struct err *e)
{
    if (!rename(folder->temp, folder->path)) {
        close_folder(folder);
        return 0;
    }
    err_set(e, EXIT_CANNOT_CREATE, "%s: cannot rename to %s: %s", folder->temp, folder->path,
            strerror(errno));
    folder_abandon(folder);
    return -1;
}

void folder_abandon(struct folder *folder)
{
    if (folder->temp) {
        clear(folder->temp);
        rmdir(folder->temp);
    }
    close_folder(folder);
}
