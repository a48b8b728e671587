/* test-filehash.c - tests that the hash of a large file is remembered until the file changes, and
 * that a damaged cache entry is ignored. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/filehash.h"
#include "tests/files.h"
#include "tests/tap.h"

static char file[64], small[64], folder[96];

/* Counts remembered hashes. break_them not NULL: overwrites each with this text. */
static int kept(const char *break_them)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (x->d_name[0] == '.')
            continue;
        n++;
        char *path = mem_format("%s/%s", folder, x->d_name);
        if (break_them)
            files_put_text(path, break_them);
        free(path);
    }
    if (d)
        closedir(d);
    return n;
}

static int gives(const char *text, int want)
{
    char hex[65], right[65];
    struct err e = {0};
    int got = filehash(file, 4, hex, &e);
    hash_bytes(text, strlen(text), right);
    return got == want && !strcmp(hex, right);
}

int main(void)
{
    files_begin();
    snprintf(file, sizeof file, "%s/weights", files_root);
    snprintf(folder, sizeof folder, "%s/crossover/sha256", files_root);
    setenv("XDG_CACHE_HOME", files_root, 1);
    files_put_text(file, "first");
    snprintf(small, sizeof small, "%s/small", files_root);
    files_put_text(small, "few");
    ok(gives("first", 0) && gives("first", 0) && !kept(NULL), "a young file is not remembered");
    sleep(FILEHASH_AGE_S + 2);
    ok(gives("first", 0) && kept(NULL) == 1 && gives("first", 1),
       "the hash of an older file is remembered");
    char made[65], wrong[65];
    struct err none = {0};
    hash_bytes("second", 6, wrong);
    kept(wrong);
    ok(filehash(file, 4, made, &none) == 1 && !strcmp(made, wrong),
       "a remembered hash is believed");
    ok(!filehash_anew(file, 4, made, &none) && strcmp(made, wrong) && gives("first", 1),
       "filehash_anew() reads the bytes and replaces a wrong entry");
    kept("not a hash");
    ok(gives("first", 0) && gives("first", 1), "a broken entry is replaced");
    struct stat s;
    stat(file, &s);
    files_put_text(file, "other");
    ok(gives("other", 0), "a file of the same size at another time is hashed anew");
    struct timespec times[2] = {s.st_atim, s.st_mtim};
    utimensat(AT_FDCWD, file, times, 0);
    ok(gives("other", 0), "a changed file is noticed although its time is set back");
    struct err e = {0};
    char hex[65];
    ok(!filehash(small, 4, hex, &e) && !filehash(small, 4, hex, &e) && kept(NULL) == 1,
       "small files are not remembered, however old");
    ok(filehash("no/such/file", 4, hex, &e) == -1 && e.code == EXIT_NO_INPUT, "%s", e.text);
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    files_put_text(file, "nowhere to keep it");
    ok(gives("nowhere to keep it", 0), "no place to remember is no error");
    files_end();
    return tap_done();
}
