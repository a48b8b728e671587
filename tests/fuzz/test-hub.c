/* test-hub.c - feeds the local cache of checkpoints, with any names, refs, files and links: a
 * folder that is found exists, and an accepted link ends in the cache. A NUL ends the name that is
 * looked up. Each line after it is an entry: its kind (r: ref, s: snapshot, f: file of the
 * snapshot, l: link in the snapshot), its name, a space, and its text or the target of the link. */
#include "lib/base/file.h"
#include "lib/checkpoint/hub.h"
#include "tests/fuzz/fuzz.h"

#define HASH "0123456789abcdef0123456789abcdef01234567"
#define HOME "models--org--name"
#define SNAPSHOT HOME "/snapshots/" HASH

enum { ENTRIES = 8 };

static int fuzz_seed(size_t i, struct buf *to)
{
    static const struct { const char *name, *entries; } all[] = {
        {"org/name", "rmain " HASH "\nfconfig.json {}\nlweights ../../blobs/b\n"},
        {"org/name@" HASH, "la ../../../../other\nlb /etc/passwd\nlc b\nld ../" HASH "/f\n"},
        {"org/name@pr", "rpr " HASH "\n\nsother\nlx ../other\nfy z\nld .\n"},
        {"org/name@main", "rmain no hash\nsmain\nlmain nowhere\n"}};
    if (i >= sizeof all / sizeof *all)
        return 0;
    buf_put(to, all[i].name, strlen(all[i].name) + 1);
    buf_text(to, all[i].entries);
    return 1;
}

/* Returns the path of an entry, or NULL if its name is no name of a file. */
static char *path_of(char what, const char *name)
{
    static const char *const where[] = {['r'] = HOME "/refs", ['s'] = HOME "/snapshots",
                                        ['f'] = SNAPSHOT, ['l'] = SNAPSHOT};
    const size_t known = sizeof where / sizeof *where;
    const char *folder = (unsigned char)what < known ? where[(unsigned char)what] : NULL;
    if (!folder || !*name || strlen(name) > 100 || strchr(name, '/') || !strcmp(name, ".") ||
        !strcmp(name, "..") || !strcmp(name, HASH))
        return NULL;
    return mem_format("%s/%s/%s", files_root, folder, name);
}

/* Writes a file that does not exist yet, and never through a link. */
static int make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int bad = fd < 0 || write(fd, text, strlen(text)) < 0;
    if (fd >= 0)
        close(fd);
    return bad;
}

/* Makes the entry of a line. Returns its path, or NULL if none was made. */
static char *make_entry(char *line)
{
    char *space = strchr(line + 1, ' '), *text = space ? space + 1 : line;
    if (space)
        *space = 0;
    char *path = path_of(*line, line + 1);
    if (path && !(*line == 's' ? mkdir(path, 0700)
                  : *line == 'l' ? symlink(text, path) : make_file(path, text)))
        return path;
    free(path);
    return NULL;
}

/* A repository with a snapshot and a blob. */
static void make_repository(void)
{
    files_grow(HOME "/blobs/b", "");
    files_grow(HOME "/refs/of", "");
    files_grow(SNAPSHOT "/of", "");
    setenv("HF_HUB_CACHE", files_root, 1);
}

/* A link that is accepted ends in the cache. */
static void check_link(const char *path)
{
    char *to = realpath(path, NULL), *root = realpath(files_root, NULL);
    if (hub_contains(files_at(SNAPSHOT), path))
        fuzz_check(to && !strncmp(to, root, strlen(root)) && to[strlen(root)] == '/');
    free(to);
    free(root);
}

static void look_up(const char *name)
{
    struct err e = {0};
    char model[HUB_NAME] = "";
    char *folder = hub_folder(name, &e);
    if (!folder) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_NO_INPUT);
        return;
    }
    fuzz_check(file_is_folder(folder));
    fuzz_check(!strcmp(folder, name) || !strncmp(folder, files_root, strlen(files_root)));
    hub_model_name(folder, model);
    fuzz_check(*model && strlen(model) < HUB_NAME && !strpbrk(model, " \n/'\"\\"));
    free(folder);
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct buf name = fuzz_part(&bytes, &n), all = {0};
    static int ready;
    char *made[ENTRIES], *rest;
    size_t count = 0;
    if (!ready++)
        make_repository();
    buf_put(&all, bytes, n);
    for (char *line = strtok_r(all.data, "\n", &rest); line && count < ENTRIES;
         line = strtok_r(NULL, "\n", &rest))
        count += (made[count] = make_entry(line)) != NULL;
    buf_text(&name, "");
    look_up(name.data);
    while (count) {
        check_link(made[--count]);
        remove(made[count]);
        free(made[count]);
    }
    buf_free(&name);
    buf_free(&all);
}

FUZZ_TARGET("hub", 200)
