/* hub.c - finds checkpoints by name in the local cache.
 *
 * The cache of huggingface_hub holds, per repository, refs/NAME (a commit hash) and snapshots/HASH/
 * (links into blobs/). This file uses no network.
 * Source: huggingface_hub, "Manage your cache" (huggingface.co/docs/huggingface_hub). */
#include "lib/checkpoint/hub.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static char *from_env(const char *variable, const char *below)
{
    const char *v = getenv(variable);
    return v && *v ? mem_format("%s%s", v, below) : NULL;
}

/* The cache's folder, or NULL. The caller frees. */
static char *cache_root(void)
{
    char *root = from_env("HF_HUB_CACHE", "");
    if (!root)
        root = from_env("HUGGINGFACE_HUB_CACHE", "");
    if (!root)
        root = from_env("HF_HOME", "/hub");
    if (!root)
        root = from_env("XDG_CACHE_HOME", "/huggingface/hub");
    if (!root)
        root = from_env("HOME", "/.cache/huggingface/hub");
    return root;
}

/* 1: "org/name" or "name" as the hub allows it: no part is empty or begins with a dot, no "..", no
 * "--". */
static int is_repository(const char *text)
{
    const char *slash = strchr(text, '/');
    size_t n = strlen(text), first = slash ? (size_t)(slash - text) : n;
    if (n > 200 || strspn(text, NAME_BYTES "/") != n || strstr(text, "..") || strstr(text, "--"))
        return 0;
    if (first == 0 || *text == '.' || (slash && (!slash[1] || slash[1] == '.')))
        return 0;
    return !slash || !strchr(slash + 1, '/');
}

static int is_revision(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < 200 && strspn(text, NAME_BYTES "/") == n && !strstr(text, "..") &&
           *text != '/';
}

/* The commit hash in refs/REV, else REV itself. The caller frees. */
static char *commit_of(const char *repository, const char *revision)
{
    struct buf text = {0};
    char *path = mem_format("%s/refs/%s", repository, revision), *commit = NULL;
    if (file_exists(path) && !file_read(path, 256, &text, NULL)) {
        text.data[strspn(text.data, "0123456789abcdef")] = 0;
        if (strlen(text.data) == 40)
            commit = mem_text(text.data);
    }
    free(path);
    buf_free(&text);
    return commit ? commit : mem_text(revision);
}

/* -1: a link of the snapshot is broken; *e names the first broken link. */
static int check_complete(const char *folder, const char *repository, struct err *e)
{
    DIR *open = opendir(folder);
    int bad = 0;
    for (struct dirent *entry; open && !bad && (entry = readdir(open));) {
        char *path = mem_format("%s/%s", folder, entry->d_name);
        if (!file_exists(path))
            bad = err_set(e, EXIT_NO_INPUT,
                          "%s: %s is not there: the download is not complete; run: hf download %s",
                          folder, entry->d_name, repository);
        free(path);
    }
    if (open)
        closedir(open);
    return bad;
}

/* The folder of the snapshot of a repository in the cache, the caller's; NULL: *e is set. */
static char *snapshot(const char *root, const char *repository, const char *revision,
                      struct err *e)
{
    const char *slash = strchr(repository, '/');
    char *home = slash ? mem_format("%s/models--%.*s--%s", root, (int)(slash - repository),
                                    repository, slash + 1)
                       : mem_format("%s/models--%s", root, repository);
    char *commit = commit_of(home, revision ? revision : "main");
    char *folder = mem_format("%s/snapshots/%s", home, commit);
    int gated = !strncmp(repository, "meta-llama/", 11), bad = 0;
    if (!file_is_folder(folder))
        bad = err_set(e, EXIT_NO_INPUT,
                      "%s%s%s: no such folder, and not in the cache %s; try: hf "
                      "download %s%s%s%s",
                      repository, revision ? "@" : "", revision ? revision : "", root, repository,
                      revision ? " --revision " : "", revision ? revision : "",
                      gated ? " (after asking for access on its page, and: hf auth login)" : "");
    bad = bad || check_complete(folder, repository, e);
    free(home);
    free(commit);
    if (bad) {
        free(folder);
        folder = NULL;
    }
    return folder;
}

static char *find_folder(const char *name, struct err *e)
{
    if (file_is_folder(name))
        return mem_text(name);
    if (file_exists(name)) {
        err_set(e, EXIT_NO_INPUT, "%s: expected a folder with config.json and *.safetensors, got a "
                "file", name);
        return NULL;
    }
    char *repository = mem_text(name), *at = strchr(repository, '@'), *folder = NULL;
    char *root = cache_root();
    if (at)
        *at++ = 0;
    if (!is_repository(repository) || (at && !is_revision(at)))
        err_set(e, EXIT_NO_INPUT,
                "%s: no such folder, and not a name of the form org/name[@revision]", name);
    else if (!root)
        err_set(e, EXIT_NO_INPUT, "%s: no such folder, and no cache: set HF_HOME", name);
    else
        folder = snapshot(root, repository, at, e);
    free(root);
    free(repository);
    return folder;
}

/* A folder with an adapter is refused. Other programs add the adapter to the weights; this program
 * would ignore it, and so run a different model. */
char *hub_folder(const char *name, struct err *e)
{
    char *folder = find_folder(name, e);
    char *adapter = folder ? mem_format("%s/adapter_config.json", folder) : NULL;
    if (adapter && file_exists(adapter)) {
        err_set(e, EXIT_BAD_DATA, "%s: an adapter (LoRA) is not read: merge it into its model "
                "first (peft: merge_and_unload)", adapter);
        free(folder);
        folder = NULL;
    }
    free(adapter);
    return folder;
}

/* 1: `path` (resolved) is below `root` (resolved here). */
static int is_below(const char *path, const char *root)
{
    char *r = realpath(root, NULL);
    size_t n = r ? strlen(r) : 0;
    int yes = r && !strncmp(path, r, n) && path[n] == '/';
    free(r);
    return yes;
}

int hub_contains(const char *folder, const char *path)
{
    char *to = realpath(path, NULL), *real = realpath(folder, NULL), *up = NULL;
    if ((!to || !real) && errno == ENOMEM)
        err_machine(__FILE__, __LINE__, "out of host memory");
    int yes = to && real && is_below(to, real);
    char *slash = real ? strrchr(real, '/') : NULL;
    if (to && slash && !yes) {
        *slash = 0;
        char *parent = strrchr(real, '/');
        if (parent && !strcmp(parent, "/snapshots")) {
            *parent = 0;
            up = mem_format("%s/blobs", real);
            yes = is_below(to, up);
            free(up);
            up = mem_format("%s/../blobs", real);
            yes = yes || is_below(to, up);
            free(up);
        }
    }
    free(to);
    free(real);
    return yes;
}

/* ---- names of models ---- */

/* name = the text, with %XX for bytes that need quoting, because the name is part of `config` in
 * records. A text that does not fit is cut, and its hash is appended, so that two texts never get
 * the same name. */
static void write_name(const char *text, char name[HUB_NAME])
{
    enum { KEPT = 50, DIGITS = 12 };
    struct buf buffer = {0};
    char hex[65];
    for (const char *at = text; *at; at++)
        buf_format(&buffer, strchr(NAME_BYTES "+", *at) ? "%c" : "%%%02X", (unsigned char)*at);
    hash_bytes(text, strlen(text), hex);
    if (buffer.len < HUB_NAME)
        memcpy(name, buffer.data, buffer.len + 1);
    else
        snprintf(name, HUB_NAME, "%.*s~%.*s", KEPT, buffer.data, DIGITS, hex);
    buf_free(&buffer);
}

void hub_model_name(const char *folder, char name[HUB_NAME])
{
    char *real = realpath(folder, NULL), *base = real ? strrchr(real, '/') : NULL;
    if (!real && errno == ENOMEM)
        err_machine(__FILE__, __LINE__, "out of host memory");
    if (base && base > real) {
        *base = 0;
        char *parent = strrchr(real, '/');
        if (parent && parent > real && !strcmp(parent, "/snapshots")) {
            *parent = 0;
            char *cache = strrchr(real, '/'), *dashes = NULL;
            for (char *at = cache; at && (at = strstr(at, "--")); at += 2)
                dashes = at + 1;
            base = dashes ? dashes : base;
        }
    }
    write_name(base && base[1] ? base + 1 : "model", name);
    free(real);
}
