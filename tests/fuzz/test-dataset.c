/* test-dataset.c - data sets in each format: every record becomes a prompt or is refused. The first
 * byte chooses the format. */
#include "lib/text/dataset.h"
#include "lib/text/utf8.h"
#include "tests/fuzz/memory.h"

static const char *const formats[] = {"auto", "sharegpt", "wikitext", "jsonl", "text", "prompts"};
enum { FORMATS = sizeof formats / sizeof *formats };

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "0[{\"id\":\"a\",\"conversations\":[{\"from\":\"human\",\"value\":\"Hi\"},"
        "{\"from\":\"gpt\",\"value\":\"Yes\"}]}, {\"id\":2,\"conversations\":[]}]\n",
        "0\xef\xbb\xbf = Head =\r\n\r\n one two three four\r\n\r\n\xc3\xa9 five \xff\n",
        "3{\"instruction\":\"Add\",\"input\":\"1 2\",\"output\":\"3\"}\n"
        "{\"question\":\"q\",\"answer\":\"so #### 42 \"}{\"task_id\":7,\"prompt\":\"p\"}\n",
        "5{\"id\":\"p\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"},"
        "{\"role\":\"assistant\",\"content\":\"y\"}]}\n{\"id\":\"q\",\"prompt_ids\":[1,2]}\n",
        "0id,text,label\n1,\"one, two\",x\n", "4one\ntwo\n\nthree\n",
    };
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

/* A record that is a prompt. */
static void use(const json_t *prompt)
{
    const json_t *id = json_object_get(prompt, "id");
    fuzz_check(json_is_string(id) && json_string_length(id) > 0);
    fuzz_check(json_object_get(prompt, "text") || json_object_get(prompt, "messages") ||
               json_object_get(prompt, "prompt_ids"));
    char *line = json_dumps(prompt, JSON_COMPACT);
    fuzz_check(line && utf8_valid(line, strlen(line)) == strlen(line));
    free(line);
}

static void fuzz_one(const char *bytes, size_t n)
{
    if (!n)
        return;
    struct err e = {0};
    struct dataset_options o = {.format = formats[(unsigned char)*bytes % 16 % FORMATS],
                                .max_bytes = 1 << 20, .max_line = 1 << 16, .min_turns = 1,
                                .renumber = *bytes & 16 ? 0 : 1};
    memory_put(0, MEMORY_FOLDER, bytes + 1, n - 1);
    struct dataset *d = dataset_open(MEMORY_FOLDER, &o, &e);
    json_t *prompt;
    int r = d ? 1 : 0;
    if (!d)
        fuzz_check_refused(&e);
    for (size_t seen = 0; r && d; seen++) {
        e = (struct err){0};
        r = dataset_next(d, &prompt, &e);
        fuzz_check(seen <= (1 << 20) + 2);
        if (r > 0)
            use(prompt);
        else if (r < 0)
            fuzz_check_refused(&e);
        json_decref(r > 0 ? prompt : NULL);
        if (r < 0 && (dataset_broken(d) || e.code != EXIT_BAD_DATA))
            break;
    }
    dataset_close(d);
}

FUZZ_TARGET("dataset", 1000)
