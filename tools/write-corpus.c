/* write-corpus - a seed in, prompt records with references out: stories and worded sums, or lists.
 *
 * All templates and words were written for this project (lib/train/corpus-*.c). A record depends
 * only on the seed, its part and the records before it, so a longer corpus begins with the shorter
 * one.
 *
 * The parts valid and test use keys that train never uses. A record of test is drawn again while
 * its key or its text occurs in valid or earlier in test. For this check valid is drawn once
 * more. */
#include <stdio.h>
#include <string.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/base/out.h"
#include "lib/record/json.h"
#include "lib/train/corpus.h"

struct args {
    const char *part;
    int64_t count, apart;
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

/* seed_word: the random numbers of a part derive from it. */
static const struct corpus_part {
    const char *name, *seed_word;
    int heldout;
} parts[] = {{"train", "train", 0}, {"valid", "heldout", 1}, {"test", "test", 1}};

static const struct corpus_part *part_named(const char *name)
{
    const struct corpus_part *p = parts;
    while (strcmp(p->name, name)) p++;
    return p;
}

static void draw(const struct args *a, const struct corpus_part *part, struct rng *r,
                 struct corpus_record *c)
{
    if (a->lists)
        corpus_list(r, part->heldout, c);
    else if (rng_uniform(r) < a->mix)
        corpus_sum(r, part->heldout, c);
    else
        corpus_story(r, part->heldout, c);
}

/* 1 when the key or the text of c is in `seen`. Adds both to it. */
static int was_seen(json_t *seen, const struct corpus_record *c)
{
    const int was = json_object_get(seen, c->key.data) || json_object_get(seen, c->text.data);
    json_object_set_new(seen, c->key.data, json_true());
    json_object_set_new(seen, c->text.data, json_true());
    return was;
}

/* Calls keep() with n records of a part. seen: keys and texts to avoid, or NULL. */
static void each_record(const struct args *a, const struct corpus_part *part, int64_t n,
                        json_t *seen,
                        void (*keep)(void *ctx, int64_t i, const struct corpus_record *c),
                        void *ctx)
{
    struct corpus_record c = {0};
    char word[24];
    snprintf(word, sizeof word, "%s%s", part->seed_word, a->lists ? "-list" : "");
    const uint64_t seed = rng_derive((uint64_t)a->common.seed, word);
    for (int64_t i = 0; i < n; i++) {
        struct rng r = {seed, (uint64_t)i, 0};
        do draw(a, part, &r, &c);
        while (seen && was_seen(seen, &c));
        keep(ctx, i, &c);
    }
    corpus_record_free(&c);
}

static void remember(void *seen, int64_t i, const struct corpus_record *c)
{
    (void)i;
    was_seen(seen, c);
}

struct sink {
    FILE *f;
    char part[24];
    struct buf line;
};

/* A write error is reported when the output is committed. */
static void write_record(void *ctx, int64_t i, const struct corpus_record *c)
{
    struct sink *s = ctx;
    put_record(&s->line, s->part, i + 1, c);
    fwrite(s->line.data, 1, s->line.len, s->f);
}

static void write_records(const struct args *a, FILE *f)
{
    struct sink s = {.f = f};
    snprintf(s.part, sizeof s.part, "%s%s", a->part, a->lists ? "-list" : "");
    json_t *seen = strcmp(a->part, "test") ? NULL : json_object();
    if (seen) each_record(a, part_named("valid"), a->apart, NULL, remember, seen);
    each_record(a, part_named(a->part), a->count, seen, write_record, &s);
    json_decref(seen);
    buf_free(&s.line);
}

int main(int argc, char **argv)
{
    struct args a = {.part = "train", .count = 1000, .apart = 2000, .mix = 0.4,
                     .common = COMMON_DEFAULTS};
    const struct opt options[] = {
        {"part", 'p', OPT_CHOICE, &a.part, .choices = "train|valid|test", .arg = "PART",
         .help = "part of the corpus (train)"},
        {"count", 'n', OPT_INT, &a.count, 1, 1e9, .arg = "N", .help = "records to write (1000)"},
        {"mix", 0, OPT_REAL, &a.mix, 0, 1, .arg = "F",
         .help = "share of worded sums; the others are stories (0.4)"},
        {"lists", 0, OPT_FLAG, &a.lists,
         .help = "write list tasks instead: copy, reverse, shuffle, replace"},
        {"apart", 0, OPT_INT, &a.apart, 0, 1e9, .arg = "N",
         .help = "test: avoid keys and texts of the first N records of valid (2000)"},
        OPT_COMMON(a.common),
        {0}};
    const struct tool t = {
        "write-corpus", "a seed in, prompt records with references out: stories, sums, lists",
        "write-corpus --part train --count 24000 --seed 1 > train.ndjson\n"
        "write-corpus --part test --lists --count 400 | gen-llama -m DIR | score-exact\n",
        "The records are plain prompts, without meta and end records. The key of a record\n"
        "is the operands of a sum, the (name, object, place) of a story, or the list. No\n"
        "key of valid or test occurs in train. With the same seed and --mix no key of\n"
        "test occurs in valid. Each key occurs once in test. An {answer in braces} is\n"
        "right in any order.\n", options, NEEDS_NOTHING};
    if (opt_parse(&t, argc, argv) < argc) opt_usage(&t, "takes no operands");
    struct err e = {0};
    struct out o;
    if (out_open(&o, a.common.output, &e)) err_die(t.name, &e);
    write_records(&a, o.f);
    if (out_commit(&o, &e)) err_die(t.name, &e);
    return EXIT_OK;
}
