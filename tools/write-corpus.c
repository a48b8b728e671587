/* write-corpus - a seed in, prompt records with references out: stories and worded sums, or lists.
 *
 * All text is written by this project: templates and word lists in lib/train/corpus-*.c, and
 * nothing from anywhere else. Record i depends on (seed, part, i) alone, so a longer corpus begins
 * with the shorter one. */
#include <stdio.h>
#include <string.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/base/out.h"
#include "lib/train/corpus.h"

struct args {
    const char *part;
    int64_t count;
    double mix;
    int lists;
    struct common common;
};

/* ,"name":"value" with the marks that JSON wants escaped; the corpus is printable ASCII. */
static void put_field(struct buf *b, const char *name, const char *value)
{
    buf_format(b, "%s\"%s\":\"", b->len > 1 ? "," : "", name);
    for (const char *p = value; *p; p++) {
        if (*p == '"' || *p == '\\') buf_char(b, '\\');
        buf_char(b, *p);
    }
    buf_char(b, '"');
}

static void put_record(struct buf *b, const char *part, int64_t i, const struct corpus_record *c)
{
    char id[48];
    snprintf(id, sizeof id, "%s-%06lld", part, (long long)i);
    buf_clear(b);
    buf_char(b, '{');
    put_field(b, "id", id);
    put_field(b, "task", c->task);
    put_field(b, "text", c->text.data);
    put_field(b, "reference", c->reference.data);
    if (c->answer.len) put_field(b, "answer", c->answer.data);
    buf_text(b, "}\n");
}

static void write_records(const struct args *a, FILE *f)
{
    struct buf line = {0};
    struct corpus_record c = {0};
    const int heldout = !strcmp(a->part, "heldout");
    char part[24];
    snprintf(part, sizeof part, "%s%s", a->part, a->lists ? "-list" : "");
    const uint64_t seed = rng_derive((uint64_t)a->common.seed, part);
    for (int64_t i = 0; i < a->count; i++) {
        struct rng r = {seed, (uint64_t)i, 0};
        if (a->lists)
            corpus_list(&r, heldout, &c);
        else if (rng_uniform(&r) < a->mix)
            corpus_sum(&r, heldout, &c);
        else
            corpus_story(&r, heldout, &c);
        put_record(&line, part, i + 1, &c);
        fwrite(line.data, 1, line.len, f); /* errors are seen when the output is committed */
    }
    corpus_record_free(&c);
    buf_free(&line);
}

int main(int argc, char **argv)
{
    struct args a = {.part = "train", .count = 1000, .mix = 0.4, .common = COMMON_DEFAULTS};
    const struct opt options[] = {
        {"part", 'p', OPT_CHOICE, &a.part, .choices = "train|heldout", .arg = "PART",
         .help = "which part (train)"},
        {"count", 'n', OPT_INT, &a.count, 1, 1e9, .arg = "N", .help = "records (1000)"},
        {"mix", 0, OPT_REAL, &a.mix, 0, 1, .arg = "F", .help = "share of sums (0.4)"},
        {"lists", 0, OPT_FLAG, &a.lists,
         .help = "lists of words (to copy, reverse, shuffle, replace in) in place of both"},
        OPT_COMMON(a.common),
        {0}};
    const struct tool t = {
        "write-corpus", "a seed in, prompt records with references out: stories, sums, lists",
        "write-corpus --part train --count 24000 --seed 1 > train.ndjson\n"
        "write-corpus --part heldout --lists --count 400 | gen-llama -m DIR | score-exact\n",
        "The records are plain prompts, without meta and end. No operands of a sum, no\n"
        "(name, object, place) of a story and no list are in both parts. An {answer in braces} is\n"
        "right in any order.\n", options};
    if (opt_parse(&t, argc, argv) < argc) opt_usage(&t, "takes no operands");
    struct err e = {0};
    struct out o;
    if (out_open(&o, a.common.output, &e)) err_die(t.name, &e);
    write_records(&a, o.f);
    if (out_commit(&o, &e)) err_die(t.name, &e);
    return EXIT_OK;
}
