/* filehash.c - cached hashes of large files; see filehash.h.
 *
 * The cache has one small file per hash, named by the path and identity of the hashed file. A cache
 * file that is missing, broken or not writable is not an error: the file is hashed again. */
#include "lib/record/filehash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"

/* Returns a text that is different for each file and each state of a file. */
static char *identity(const char *path, const struct stat *info)
{
    char *real = realpath(path, NULL);
    if (!real && errno == ENOMEM)
        err_machine(__FILE__, __LINE__, "out of host memory");
    char *text = mem_format("%s\n%llu %llu %lld %lld.%09ld %lld.%09ld", real ? real : path,
                            (unsigned long long)info->st_dev, (unsigned long long)info->st_ino,
                            (long long)info->st_size, (long long)info->st_mtim.tv_sec,
                            info->st_mtim.tv_nsec, (long long)info->st_ctim.tv_sec,
                            info->st_ctim.tv_nsec);
    free(real);
    return text;
}

/* Path of the cache file, the caller's; NULL: there is no cache. */
static char *store_path(const char *id)
{
    char key[65], *folder = file_cache_folder("sha256");
    hash_bytes(id, strlen(id), key);
    char *path = folder ? mem_format("%s/%s", folder, key) : NULL;
    free(folder);
    return path;
}

static int recall(const char *from, char hex[65])
{
    struct buf text = {0};
    int known = from && !file_read(from, 256, &text, NULL) && text.len == 64 &&
                strspn(text.data, "0123456789abcdef") == 64;
    if (known)
        memcpy(hex, text.data, 65);
    buf_free(&text);
    return known;
}

static void remember(const char *to, const char hex[65])
{
    char *folder = mem_text(to);
    struct out out;
    *strrchr(folder, '/') = 0;
    if (!file_make_folder(folder, NULL) && !out_open(&out, to, NULL)) {
        fputs(hex, out.f);
        if (out_commit(&out, NULL))
            out_abandon(&out);
    }
    free(folder);
}

static int is_settled(const struct stat *info, time_t now)
{
    return now - info->st_ctim.tv_sec > FILEHASH_AGE_S &&
           now - info->st_mtim.tv_sec > FILEHASH_AGE_S;
}

/* recalls 1: a cached hash is accepted. */
static int find(const char *path, size_t large, int recalls, char hex[65], struct err *e)
{
    struct stat before, after;
    time_t now = time(NULL);
    if (stat(path, &before))
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    int keep = S_ISREG(before.st_mode) && before.st_size >= 0 && (size_t)before.st_size >= large;
    char *id = identity(path, &before), *store = keep ? store_path(id) : NULL;
    int known = recalls && recall(store, hex), bad = 0;
    if (!known) {
        bad = hash_file(path, hex, e);
        char *now_id = bad || stat(path, &after) ? NULL : identity(path, &after);
        if (!bad && (!now_id || strcmp(id, now_id)))
            bad = err_set(e, EXIT_IO, "%s: changed while reading", path);
        if (!bad && store && is_settled(&before, now))
            remember(store, hex);
        free(now_id);
    }
    free(id);
    free(store);
    return bad ? -1 : known;
}

int filehash(const char *path, size_t large, char hex[65], struct err *e)
{
    return find(path, large, 1, hex, e);
}

int filehash_anew(const char *path, size_t large, char hex[65], struct err *e)
{
    return find(path, large, 0, hex, e);
}
