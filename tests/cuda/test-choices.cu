/* test-choices.cu - tests the file of remembered algorithms: written entries are read again, and an
 * invalid file is refused and adds nothing. */
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/product/choices.h"
#include "tests/tap.h"

static char folder[] = "/tmp/choices-XXXXXX";

static void put(const char *path, const char *text, size_t bytes)
{
    FILE *f = fopen(path, "w");
    if (!f || fwrite(text, 1, bytes, f) != bytes || fclose(f))
        abort();
}

static const char library[] = "cuBLASLt 1";

/* Returns the number of entries of a file; 0 after an error. */
static size_t read_back(const char *path)
{
    struct choices c = {};
    struct err e = {};
    int bad = choices_read(&c, path, library, &e);
    size_t n = bad && e.code != EXIT_BAD_DATA ? 99 : c.n;
    choices_free(&c);
    return n;
}

static void test_kept(const char *path)
{
    struct choices c = {}, again = {};
    struct err e = {};
    for (uint64_t i = 0; i < 40; i++) {
        const uint64_t key[CHOICE_KEY] = {i % 4, 0, 16, i, 4096, UINT64_MAX, 1, 2, 3};
        struct gemm_choice *one = choices_add(&c, key);
        one->state = i % 5 == 0 ? 1 : 2; /* guesses are not stored */
        one->algo[7] = i << 60 | 0xabc;
    }
    choices_write(&c, path, library);
    choices_read(&again, path, library, &e);
    ok(again.n == 32, "timed choices are stored: %zu", again.n);
    const struct gemm_choice *one = choices_find(&again, c.at[39].key);
    ok(one && one->algo[7] == c.at[39].algo[7] && one->state == 0,
       "with the algorithm, not yet checked");
    ok(!choices_find(&again, c.at[35].key), "guessed choices are not stored");
    choices_read(&again, path, library, &e);
    ok(again.n == 32, "the same file twice adds nothing");
    ok(choices_read(&again, path, "cuBLASLt 12", &e) && strstr(e.text, path),
       "a file of another version of the library: %s", e.text);
    uint64_t hash = choices_hash(one);
    again.at[0].algo[7] ^= 1ull << 63;
    ok(hash == choices_hash(choices_find(&c, one->key)) &&
           choices_hash(&again.at[0]) != choices_hash(choices_find(&c, again.at[0].key)),
       "the hash is that of key and algorithm");
    choices_free(&c);
    choices_free(&again);
}

static void test_broken(const char *path)
{
    static const char good[] = "cuBLASLt 1\n0\t0\t1\t1\t2\t3\t4\t5\t6\ta\tb\tc\td\te\tf\t0\t1\n";
    size_t n = sizeof good - 1, cut = 0, changed = 0;
    put(path, good, n);
    ok(read_back(path) == 1, "a good line");
    size_t whole = sizeof "cuBLASLt 1\n" - 1; /* a file without lines is good */
    for (size_t i = 1; i < n; i++) {
        put(path, good, i);
        cut += read_back(path) == 0 && i != whole;
    }
    ok(cut == n - 2, "a line cut anywhere is not read");
    for (size_t i = 0; i < n; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[i] = '-';
        put(path, text, n);
        changed += read_back(path) == 0;
    }
    ok(changed == n, "a line with a wrong character anywhere is not read");
    static const char big[] = "cuBLASLt 1\n99999999999999999999999\t0\t1\t1\t2\t3\t4\t5\t6\t"
                              "a\tb\tc\td\te\tf\t0\t1\n";
    put(path, big, sizeof big - 1);
    ok(read_back(path) == 0, "a number that does not fit is not read");
    put(path, "", 0);
    ok(read_back(path) == 0 && read_back("/nowhere/at/all") == 0,
       "an empty or missing file gives no entries");
}

int main(void)
{
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1))
        return EXIT_FAILURE;
    char *path = choices_path("NVIDIA H200 / 1", 130200);
    char want[128];
    snprintf(want, sizeof want, "%s/crossover/gemm-NVIDIA_H200___1-130200.tsv", folder);
    ok(path && !strcmp(path, want), "the path names device and version");
    test_kept(path);
    test_broken(path);
    unlink(path);
    free(path);
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "", 1);
    ok(!choices_path("x", 1), "no folder: nothing is stored");
    snprintf(want, sizeof want, "%s/crossover", folder);
    rmdir(want);
    rmdir(folder);
    return tap_done();
}
