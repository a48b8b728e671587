/* Lists of whole numbers beside the record: which, and that hashes do not tell where they are. The
 * parser itself, over changed bytes: test-json.c. */
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/record/numbers.h"
#include "lib/record/rec.h"
#include "tests/files.h"
#include "tests/tap.h"

/* Reads lines with lists apart; of each the length of its token_ids there, -1: none, into has[],
 * its hash into content[], and into inside[] whether the record has any. Returns how many. */
static size_t read_apart(const char *lines, int64_t *has, uint64_t *content, int *inside)
{
    char *path = mem_format("%s/apart.ndjson", files_root);
    const char *p = path;
    struct err e = {0};
    json_t *record;
    size_t n = 0;
    files_put(path, lines, strlen(lines));
    struct rec_reader *r = rec_read_open(&p, 1, &e);
    const struct numbers_apart *lists = rec_read_numbers(r);
    for (; rec_read(r, &record, &e) > 0; n++) {
        const struct numbers *ids = numbers_of(lists, "token_ids");
        has[n] = ids ? (int64_t)ids->n : -1;
        content[n] = rec_read_content(r);
        inside[n] = json_object_get(record, "token_ids") != NULL;
        json_decref(record);
    }
    rec_read_close(r);
    unlink(path);
    free(path);
    return n;
}

static void test_apart(void)
{
    enum { LINES = 8 };
    int64_t has[LINES];
    uint64_t content[LINES];
    int inside[LINES];
    size_t n = read_apart("{\"kind\":\"generation\",\"token_ids\":[1,2],\"x\":1}\n"
                          "{\"kind\":\"generation\",\"token\\u005fids\":[1,2],\"x\":1}\n"
                          "{\"x\":1,\"token_ids\":[ 1,2 ],\"run\":\"r\",\"kind\":\"generation\"}\n"
                          "{\"kind\":\"generation\",\"token_ids\":[1,2.0],\"x\":1}\n"
                          "{\"kind\":\"metric\",\"token_ids\":[1,2],\"x\":1}\n"
                          "{\"kind\":\"metric\",\"token_ids\":[1,2],\"x\":2}\n"
                          "{\"kind\":\"generation\",\"token_ids\":[1,2],\"x\":1}\n"
                          "{\"kind\":\"generation\",\"token_ids\":[1,3],\"x\":1}\n",
                          has, content, inside);
    ok(n == LINES && has[0] == 2 && has[1] == 2 && has[2] == 2 && has[6] == 2 && has[7] == 2 &&
       !inside[0] && !inside[1] && !inside[2] && !inside[6],
       "lists of generations are apart, however they are spelled");
    ok(has[3] < 0 && inside[3] && has[4] < 0 && inside[4] && has[5] < 0 && inside[5],
       "a list with another number, and those of other kinds, stay");
    ok(content[0] == content[1] && content[0] == content[2] && content[0] == content[6] &&
       content[0] != content[3] && content[0] != content[7] && content[4] != content[5],
       "what says the same has the same hash, and nothing else");
}

int main(void)
{
    files_begin();
    test_apart();
    files_end();
    return tap_done();
}
