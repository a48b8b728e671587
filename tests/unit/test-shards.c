/* test-shards.c - tests that the index, the files and the links of a folder of shards must
 * agree. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/safetensors.h"
#include "tests/files.h"
#include "tests/tap.h"

static void link_to(const char *target, const char *link)
{
    if (symlink(target, link))
        exit(1);
}

/* Writes a shard with U8 tensors of 4 bytes, one for each letter. */
static void put_shard(const char *to, const char *letters)
{
    struct err e = {0};
    struct tensor list[8];
    char names[8][2];
    size_t n = 0;
    for (; letters[n]; n++) {
        memcpy(names[n], (char[]){letters[n], 0}, 2);
        list[n] = (struct tensor){.name = names[n],
                                  .dtype = "U8",
                                  .rank = 1,
                                  .shape = {4},
                                  .bytes = 4,
                                  .data = (const unsigned char *)"data"};
    }
    if (safetensors_write(to, list, n, NULL, &e))
        exit(1);
}

#define INDEX "f/model.safetensors.index.json"
#define ONE "model-00001-of-00002.safetensors"
#define TWO "model-00002-of-00002.safetensors"
#define MAP "\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" ONE "\",\"c\":\"" TWO "\"}"

/* Makes the good folder: tensors a and b in the first shard, c in the second. */
static void fresh(void)
{
    mkdir(files_at("f"), 0755);
    unlink(files_at("f/model.safetensors"));
    unlink(files_at("f/model-00003-of-00003.safetensors"));
    unlink(files_at("f/" ONE));
    unlink(files_at("f/" TWO));
    put_shard(files_at("f/" ONE), "ab");
    put_shard(files_at("f/" TWO), "c");
    files_put_text(files_at(INDEX), "{\"metadata\":{\"total_size\":12}," MAP "}");
}

/* says NULL: the folder must open with n tensors; else `code` and a message with `says`. */
static void judge(const char *what, int code, const char *says)
{
    struct err e = {0};
    struct tensors *t = safetensors_open_folder(files_at("f"), &e);
    ok(says ? !t && e.code == code && strstr(e.text, says) : t && safetensors_count(t) == 3,
       "%s: %s", what, says ? e.text : "opens");
    if (says && !(e.code == code && strstr(e.text, says)))
        printf("# wanted %d %s, got %d\n", code, says, e.code);
    safetensors_close(t);
}

static void judge_index(const char *index, const char *says)
{
    fresh();
    files_put_text(files_at(INDEX), index);
    judge(index[0] ? index : "(empty)", EXIT_BAD_DATA, says);
}

static void test_good(void)
{
    struct err e = {0};
    fresh();
    judge("two shards", 0, NULL);
    struct tensors *t = safetensors_open_folder(files_at("f"), &e);
    ok(t && safetensors_files(t) == 2 && safetensors_find(t, "c") && !safetensors_find(t, "d"),
       "all found");
    ok(t && !safetensors_unchanged(t, &e) && truncate(files_at("f/" TWO), 9) == 0 &&
           safetensors_unchanged(t, &e) == -1 && strstr(e.text, TWO),
       "a cut shard is noticed: %s", e.text);
    safetensors_close(t);
    fresh();
    files_put_text(files_at(INDEX), "{" MAP "}");
    judge("no total_size", 0, NULL);
    unlink(files_at(INDEX));
    unlink(files_at("f/" ONE));
    unlink(files_at("f/" TWO));
    put_shard(files_at("f/model.safetensors"), "abc");
    judge("one file", 0, NULL);
}

/* total_size is only a hint: the folder opens with any value, and a wrong one gives a note. */
static void test_total(void)
{
    static const struct { const char *value, *says; } totals[] = {
        {"\"metadata\":{\"total_size\":12},", NULL},
        {"\"metadata\":{\"total_size\":12.0},", NULL},
        {"\"metadata\":{\"total_size\":13},", "total_size is 13, the tensors have 12 bytes"},
        {"\"metadata\":{\"total_size\":\"12\"},", "total_size is \"12\""},
        {"\"metadata\":{\"total_size\":-1},", "total_size is -1"},
        {"\"metadata\":{\"total_size\":null},", "total_size is null"},
        {"\"metadata\":{},", "total_size is missing"},
        {"", "total_size is missing"}};
    char index[300];
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        struct err e = {0};
        fresh();
        snprintf(index, sizeof index, "{%s" MAP "}", totals[i].value);
        files_put_text(files_at(INDEX), index);
        struct tensors *t = safetensors_open_folder(files_at("f"), &e);
        const char *note = t ? safetensors_note(t) : NULL;
        ok(t && (totals[i].says ? note && strstr(note, totals[i].says) : !note),
           "%s opens, and says: %s", totals[i].value, t ? note ? note : "nothing" : e.text);
        safetensors_close(t);
    }
}

/* The folder must open with n tensors, and a note that has both texts. */
static void judge_note(const char *what, size_t n, const char *says, const char *also)
{
    struct err e = {0};
    struct tensors *t = safetensors_open_folder(files_at("f"), &e);
    const char *note = t ? safetensors_note(t) : NULL;
    ok(t && safetensors_count(t) == n && note && strstr(note, says) && strstr(note, also),
       "%s: opens, and says: %s", what, note ? note : e.text);
    safetensors_close(t);
}

/* A tensor that only the index names is a note, because the network may not need it. A tensor in
 * another shard than the index says is an error. */
static void test_lost(void)
{
    fresh();
    files_put_text(files_at(INDEX), "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"a\":\"" ONE
             "\",\"b\":\"" ONE "\",\"c\":\"" TWO "\",\"d\":\"" TWO "\"}}");
    judge_note("a name without a tensor", 3, "1 named there is in no shard", "\"d\" not in " TWO);
    fresh();
    put_shard(files_at("f/" ONE), "a");
    judge_note("a tensor is missing in its shard", 2, "\"b\" not in " ONE, "total_size is 12");
    fresh();
    put_shard(files_at("f/" ONE), "ac");
    unlink(files_at("f/" TWO));
    put_shard(files_at("f/" TWO), "x");
    judge("a tensor in another shard than the index says", EXIT_BAD_DATA, "\"c\" is in " ONE);
}

static void test_names(void)
{
    static const char *const names[] = {"../../etc/passwd", "/etc/passwd", "a/b", "", ".", "..",
                                        "a b", "a\\u0000", "a\\n", "a\\\\b", "\xc3\xa9"};
    char index[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(index, sizeof index, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        judge_index(index, "expected a shard name");
    }
    struct buf b = {0};
    buf_text(&b, "{\"weight_map\":{\"a\":\"");
    for (int i = 0; i < 10240; i++)
        buf_char(&b, 'n');
    buf_text(&b, "\"}}");
    fresh();
    files_put_text(files_at(INDEX), b.data);
    judge("a name of 10 KB", EXIT_BAD_DATA, "expected a shard name");
    buf_free(&b);
}

static void test_index(void)
{
    judge_index("", "empty");
    judge_index("[]", "weight_map");
    judge_index("{}", "weight_map");
    judge_index("{\"weight_map\":{}}", "weight_map");
    judge_index("{\"weight_map\":[]}", "weight_map");
    judge_index("{\"weight_map\":{\"a\":1}}", "not a string");
    judge_index("{\"weight_map\":{\"a\":\"" ONE "\",\"a\":\"" TWO "\"}}", "duplicate");
    judge_index("{\"weight_map\":{\"a\":\"" ONE "\",\"c\":\"" TWO "\"}}", "\"b\" is in " ONE);
    judge_index("{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" TWO "\",\"c\":\"" TWO "\"}}",
                "\"b\" is in " ONE);
    judge_index("{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" ONE "\"}}", "names 1 shards");
    judge_index("{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"model-00003-of-00003.safetensors\"}}",
                "does not belong");
    judge_index("{\"weight_map\":{\"a\":\"" ONE "\",\"c\":\"other.safetensors\"}}",
                "does not belong");
    judge_index("{\"weight_map\":{\"a\":\"model-00003-of-00002.safetensors\"}}", "does not belong");
    judge_index("{\"weight_map\":{\"a\":\"none.safetensors\"}}", "none.safetensors");
}

static void test_files(void)
{
    fresh();
    unlink(files_at("f/" TWO));
    judge("a shard is missing", EXIT_BAD_DATA, TWO);
    fresh();
    put_shard(files_at("f/" TWO), "cb");
    judge("a tensor in two shards", EXIT_BAD_DATA, "in two files");
    fresh();
    put_shard(files_at("f/model-00003-of-00003.safetensors"), "d");
    judge("a shard that is not listed", EXIT_BAD_DATA, "not in the index");
    fresh();
    put_shard(files_at("f/model.safetensors"), "abc");
    judge("one file and an index", EXIT_BAD_DATA, "remove one");
    fresh();
    if (truncate(files_at("f/" TWO), 70))
        exit(1);
    judge("a shard cut short", EXIT_BAD_DATA, TWO);
    fresh();
    unlink(files_at(INDEX));
    judge("shards without an index", EXIT_NO_INPUT, "without their index");
    unlink(files_at("f/" ONE));
    unlink(files_at("f/" TWO));
    judge("nothing", EXIT_NO_INPUT, "no model.safetensors");
    files_put_text(files_at("f/pytorch_model.bin"), "x");
    judge("a PyTorch file, with the command that converts it", EXIT_NO_INPUT,
          SAFETENSORS_FROM_PYTORCH);
    unlink(files_at("f/pytorch_model.bin"));
    files_put_text(files_at("f/pytorch_model-00001-of-00002.bin"), "x");
    judge("a part of a PyTorch file", EXIT_NO_INPUT, SAFETENSORS_FROM_PYTORCH);
    /* the message has a command for a transposed tensor */
    judge("a command that writes rows", EXIT_NO_INPUT,
          "v.clone(memory_format=torch.contiguous_format)");
    unlink(files_at("f/pytorch_model-00001-of-00002.bin"));
    files_put_text(files_at("f/x.gguf"), "x");
    judge("a GGUF file", EXIT_NO_INPUT, "GGUF");
    unlink(files_at("f/x.gguf"));
}

/* B7: a big shard lacks 24 MB (the file is sparse and takes no disk). */
static void test_short_shard(void)
{
    const size_t n = 64u << 20;
    struct err e = {0};
    fresh();
    struct tensor big = {.name = (char *)"c", .dtype = "U8", .rank = 1, .shape = {n}, .bytes = n,
                         .data = mem_zero(n, 1)};
    if (safetensors_write(files_at("f/" TWO), &big, 1, NULL, &e))
        exit(1);
    files_put_text(files_at(INDEX), "{" MAP "}");
    judge("a shard of 64 MB", 0, NULL);
    struct stat st;
    if (stat(files_at("f/" TWO), &st) || truncate(files_at("f/" TWO), st.st_size - (24 << 20)))
        exit(1);
    judge("24 MB short", EXIT_BAD_DATA, "cut short");
    free((void *)big.data);
}

static void test_links(void)
{
    fresh();
    mkdir(files_at("out"), 0755);
    put_shard(files_at("out/blob"), "c");
    unlink(files_at("f/" TWO));
    link_to("../out/blob", files_at("f/" TWO));
    judge("a link out of the folder", EXIT_BAD_DATA, "out of the folder");
    unlink(files_at("f/" TWO));
    link_to("nowhere", files_at("f/" TWO));
    judge("a link to nowhere", EXIT_BAD_DATA, "not complete");
    unlink(files_at("f/" TWO));
    put_shard(files_at("f/inside"), "c");
    link_to("inside", files_at("f/" TWO));
    judge("a link within the folder", 0, NULL);
    unlink(files_at("f/" TWO));
    unlink(files_at("f/inside"));
    unlink(files_at("out/blob"));
    rmdir(files_at("out"));
}

int main(void)
{
    files_begin();
    test_good();
    test_total();
    test_lost();
    test_names();
    test_index();
    test_files();
    test_short_shard();
    test_links();
    files_end();
    return tap_done();
}
