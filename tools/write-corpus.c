/* write-corpus - writes a corpus from a seed: prompt records with references, either stories and
 * worded sums or lists.
 *
 * All templates and words were written for this project (lib/train/corpus-*.c). A record depends
 * only on the seed, its part and the earlier records of the part, so a longer corpus begins with
 * the shorter one.
 *
 * The parts valid and test use keys that train never uses. A record of test is drawn again while
 * its key or its text occurs in valid or earlier in test. Valid is drawn once more for this
 * check. */
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

/* Appends ,"name":"value" with JSON escapes; the corpus is printable ASCII. */
static void put_field(struct buf *text, const char *name, const char *value)
{
    buf_format(text, "%s\"%s\":\"", text->len > 1 ? "," : "", name);
    for (const char *at = value; *at; at++) {
        if (*at == '"' || *at == '\\') buf_char(text, '\\');
        buf_char(text, *at);
    }
    buf_char(text, '"');
}

static void put_record(struct buf *text, const char *part, int64_t i,
                       const struct corpus_record *record)
{
    char id[48];
    snprintf(id, sizeof id, "%s-%06lld", part, (long long)i);
    buf_clear(text);
    buf_char(text, '{');
    put_field(text, "id", id);
    put_field(text, "task", record->task);
    put_field(text, "text", record->text.data);
    put_field(text, "reference", record->reference.data);
    if (record->answer.len) put_field(text, "answer", record->answer.data);
    buf_text(text, "}\n");
}

/* The parts of a corpus. The random numbers of a part derive from its seed_word. */
static const struct corpus_part {
    const char *name, *seed_word;
    int heldout;
} parts[] = {{"train", "train", 0}, {"valid", "heldout", 1}, {"test", "test", 1}};

static const struct corpus_part *part_named(const char *name)
{
    const struct corpus_part *part = parts;
    while (strcmp(part->name, name)) part++;
    return part;
}

static void draw(const struct args *args, const struct corpus_part *part, struct rng *rng,
                 struct corpus_record *record)
{
    if (args->lists)
        corpus_list(rng, part->heldout, record);
    else if (rng_uniform(rng) < args->mix)
        corpus_sum(rng, part->heldout, record);
    else
        corpus_story(rng, part->heldout, record);
}

/* Returns 1 if `seen` has the key or the text of the record. Adds both to `seen`. */
static int was_seen(json_t *seen, const struct corpus_record *record)
{
    const int was = json_object_get(seen, record->key.data) ||
                    json_object_get(seen, record->text.data);
    json_object_set_new(seen, record->key.data, json_true());
    json_object_set_new(seen, record->text.data, json_true());
    return was;
}

/* Calls keep() with each of n records of a part. seen: keys and texts to avoid, or NULL. */
static void each_record(const struct args *args, const struct corpus_part *part, int64_t n,
                        json_t *seen,
                        void (*keep)(void *ctx, int64_t i, const struct corpus_record *record),
                        void *ctx)
{
    struct corpus_record record = {0};
    char word[24];
    snprintf(word, sizeof word, "%s%s", part->seed_word, args->lists ? "-list" : "");
    const uint64_t seed = rng_derive((uint64_t)args->common.seed, word);
    for (int64_t i = 0; i < n; i++) {
        struct rng rng = {seed, (uint64_t)i, 0};
        do draw(args, part, &rng, &record);
        while (seen && was_seen(seen, &record));
        keep(ctx, i, &record);
    }
    corpus_record_free(&record);
}

static void remember(void *seen, int64_t i, const struct corpus_record *record)
{
    (void)i;
    was_seen(seen, record);
}

struct sink {
    FILE *f;
    char part[24];
    struct buf line;
};

/* A write error is reported when the output is committed. */
static void write_record(void *ctx, int64_t i, const struct corpus_record *record)
{
    struct sink *sink = ctx;
    put_record(&sink->line, sink->part, i + 1, record);
    fwrite(sink->line.data, 1, sink->line.len, sink->f);
}

static void write_records(const struct args *args, FILE *file)
{
    struct sink sink = {.f = file};
    snprintf(sink.part, sizeof sink.part, "%s%s", args->part, args->lists ? "-list" : "");
    json_t *seen = strcmp(args->part, "test") ? NULL : json_object();
    if (seen) each_record(args, part_named("valid"), args->apart, NULL, remember, seen);
    each_record(args, part_named(args->part), args->count, seen, write_record, &sink);
    json_decref(seen);
    buf_free(&sink.line);
}

int main(int argc, char **argv)
{
    struct args args = {.part = "train", .count = 1000, .apart = 2000, .mix = 0.4,
                        .common = COMMON_DEFAULTS};
    const struct opt options[] = {
        {"part", 'p', OPT_CHOICE, &args.part, .choices = "train|valid|test", .arg = "PART",
         .help = "part of the corpus (train)"},
        {"count", 'n', OPT_INT, &args.count, 1, 1e9, .arg = "N", .help = "records to write (1000)"},
        {"mix", 0, OPT_REAL, &args.mix, 0, 1, .arg = "F",
         .help = "share of worded sums; the others are stories (0.4)"},
        {"lists", 0, OPT_FLAG, &args.lists,
         .help = "write list tasks instead: copy, reverse, shuffle, replace"},
        {"apart", 0, OPT_INT, &args.apart, 0, 1e9, .arg = "N",
         .help = "test: avoid keys and texts of the first N records of valid (2000)"},
        OPT_COMMON(args.common),
        {0}};
    const struct tool tool = {
        "write-corpus", "a seed in, prompt records with references out: stories, sums, lists",
        "write-corpus --part train --count 24000 --seed 1 > train.ndjson\n"
        "write-corpus --part test --lists --count 400 | gen-llama -m DIR | score-exact\n",
        "The records are plain prompts, without meta and end records. The key of a record\n"
        "is the operands of a sum, the (name, object, place) of a story, or the list. No\n"
        "key of valid or test occurs in train. With the same seed and --mix no key of\n"
        "test occurs in valid. Each key occurs once in test. An {answer in braces} is\n"
        "right in any order.\n", options, NEEDS_NOTHING};
    if (opt_parse(&tool, argc, argv) < argc) opt_usage(&tool, "takes no operands");
    struct err e = {0};
    struct out out;
    if (out_open(&out, args.common.output, &e)) err_die(tool.name, &e);
    write_records(&args, out.f);
    if (out_commit(&out, &e)) err_die(tool.name, &e);
    return EXIT_OK;
}
