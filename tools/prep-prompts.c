/* prep-prompts - data sets in, prompt records out. Formats are defined in lib/text/dataset.h, the
 * choice of prompts in lib/text/choice.h. A broken record costs only itself: it becomes an error
 * record, or is left out (--skip-broken). Both are counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/base/cli/opt.h"
#include "lib/base/cli/progress.h"
#include "lib/text/choice.h"
#include "lib/text/dataset.h"
#include "lib/text/task.h"
#include "lib/checkpoint/hub.h"
#include "lib/run/prompts/contexts.h"
#include "lib/run/engine.h"
#include "lib/record/rec.h"
#include "lib/text/tokenizer.h"

enum { BROKEN_MOST = 1000000 }; /* more broken records end the tool if most are broken */

struct args {
    struct common common;
    struct dataset_options data;
    const char *split, *tokens, *tokenizer;
    const char *fits; /* models whose context a prompt must fit, with `room` tokens of answer */
    const char *ignore_config;
    int64_t count, room, token_range[2];
    const char *task, *tasks; /* of --task and --tasks */
    int64_t shots;
    const char *per_task; /* N, or TASK=N,TASK=N */
    struct choice choice; /* of --count or --per-task */
    int allow_fewer, skip_broken;
};

struct prep {
    const struct args *args;
    struct contexts contexts; /* of --fits */
    int64_t too_long;
    struct log log;
    struct rec_writer out;
    struct tokenizer *tokenizer;
    struct dataset **sets;
    size_t n_sets;
    struct places ids; /* ids in the data; a data set knows the ids that it generates */
    struct choice choice;
    int64_t read, broken;
    char first_broken[1024]; /* reason of the first broken record */
};

static const char TOOL[] = "prep-prompts";

/* ---- choosing ---- */

static int is_choosing(const struct args *a)
{
    return a->count || a->per_task;
}

/* 1: within --tokens (or no such wish), 0: not; -1. */
static int has_length(const struct prep *w, const json_t *prompt, struct err *e)
{
    if (!w->tokenizer)
        return 1;
    const char *text = rec_text(prompt, "text");
    size_t n = json_array_size(json_object_get(prompt, "prompt_ids"));
    const json_t *messages = json_object_get(prompt, "messages");
    for (size_t i = 0; text || i < json_array_size(messages); i++) {
        struct ids ids = {0};
        const char *s = text ? text : rec_text(json_array_get(messages, i), "content");
        int bad = s && tokenizer_encode(w->tokenizer, s, strlen(s), ENCODE_PLAIN, &ids, e);
        n += ids.n;
        ids_free(&ids);
        if (bad)
            return -1;
        if (text)
            break;
    }
    return (int64_t)n >= w->args->token_range[0] && (int64_t)n <= w->args->token_range[1];
}

/* Takes a prompt (stolen): writes it, or keeps it as a candidate. -1: fatal, or a broken prompt. */
static int take(struct prep *w, json_t *prompt, struct err *e)
{
    const struct args *a = w->args;
    const char *task = a->per_task ? rec_text(prompt, "task") : NULL;
    int choosing = is_choosing(a);
    task = task ? task : "";
    int fits = !choosing || choice_open(&w->choice, task, rec_text(prompt, "id"));
    if (fits)
        fits = has_length(w, prompt, e);
    if (fits > 0 && !contexts_fit(&w->contexts, prompt, (size_t)w->args->room)) {
        w->too_long++;
        fits = 0;
    }
    if (fits <= 0)
        json_decref(prompt);
    else if (choosing)
        choice_add(&w->choice, task, prompt);
    else
        return rec_write(&w->out, "prompt", prompt, e);
    return fits < 0 ? -1 : 0;
}

/* Writes the chosen ones in the order of the input. */
static int write_chosen(struct prep *w, struct err *e)
{
    struct choice *c = &w->choice;
    int bad = is_choosing(w->args) && choice_finish(c, w->args->allow_fewer, e);
    for (size_t i = 0; i < c->n && !bad; i++)
        bad = rec_write(&w->out, "prompt", json_incref(c->v[i].record), e);
    choice_free(c);
    return bad ? -1 : 0;
}

/* ---- reading ---- */

/* Notes the id of a prompt. -1: it is not new. */
static int remember(struct prep *w, const struct dataset *d, const json_t *prompt, struct err *e)
{
    const char *id = rec_text(prompt, "id");
    const size_t n = json_string_length(json_object_get(prompt, "id"));
    const int made = dataset_makes_id(d);
    int clashes = places_has(&w->ids, id, n);
    for (size_t i = 0; i < w->n_sets && !clashes; i++)
        clashes = !(made && w->sets[i] == d) && dataset_made(w->sets[i], id);
    if (clashes)
        return err_set(e, EXIT_BAD_DATA, "%s:%lld: id '%.200s' is there twice; ids must be unique "
                       "(--renumber makes new ones from the position)", dataset_name(d),
                       (long long)dataset_line(d), id);
    if (!made)
        places_of(&w->ids, id, n);
    return 0;
}

/* A broken record costs that record. -1: the error record cannot be written, or there are so many
 * that the data set has another format. */
static int broken(struct prep *w, const struct dataset *d, const json_t *id,
                  const struct err *what, struct err *e)
{
    char where[1200];
    if (!w->broken)
        memcpy(w->first_broken, what->text, sizeof w->first_broken);
    if (w->broken++ < REC_BAD_SAID)
        log_more(&w->log, "skipped: %s", what->text);
    if (w->broken > BROKEN_MOST && w->broken > w->read)
        return err_set(e, EXIT_BAD_DATA, "%lld broken records and %lld others; the first: %s",
                       (long long)w->broken, (long long)w->read, w->first_broken);
    if (w->args->skip_broken)
        return 0;
    snprintf(where, sizeof where, "%s:%lld", dataset_name(d), (long long)dataset_line(d));
    return rec_bad(&w->out, what, where, id, e);
}

static int read_set(struct prep *w, struct dataset *d, struct progress *p, struct err *e)
{
    const struct common *c = &w->args->common;
    for (;;) {
        json_t *prompt, *id = NULL;
        struct err why = {0};
        if (c->limit && w->read >= c->limit)
            return 0;
        int r = dataset_next(d, &prompt, &why);
        if (r == 0)
            return 0;
        if (r < 0 && (why.code != EXIT_BAD_DATA || dataset_broken(d)))
            return err_set(e, why.code, "%s", why.text);
        if (r > 0) {
            w->read++;
            if (remember(w, d, prompt, e)) {
                json_decref(prompt);
                return -1;
            }
            id = json_incref(json_object_get(prompt, "id"));
            r = take(w, prompt, &why);
        }
        int bad = r < 0 && why.code == EXIT_BAD_DATA
                      ? broken(w, d, id ? id : dataset_id(d), &why, e) : r;
        json_decref(id);
        if (bad)
            return err_set(e, why.code, "%s", why.text);
        progress_at(p, w->read, NULL);
    }
}

/* path, size and SHA-256 of the inputs, for the meta record. Pipes have only a name. */
static json_t *provenance(const struct args *a, char **files, int n, struct err *e)
{
    json_t *list = json_array();
    for (int i = 0; i < n && !a->common.no_meta; i++) {
        char hex[65] = "";
        if (strcmp(files[i], "-") && file_exists(files[i]) && hash_file(files[i], hex, e)) {
            json_decref(list);
            return NULL;
        }
        json_t *path = json_string(files[i]);
        json_array_append_new(list, json_pack("{s:o, s:o}", "path",
                                              path ? path : json_string("(not UTF-8)"), "sha256",
                                              *hex ? json_string(hex) : json_null()));
    }
    return json_pack("{s:o}", "inputs", list);
}

static void open_all(struct prep *w, int argc, char **argv, int first, struct err *e)
{
    static char standard[] = "-";
    char *items = NULL, *only[] = {standard};
    const struct task *task = w->args->data.task;
    if (task && first == argc && !(only[0] = items = task_items(task, e)))
        err_die(TOOL, e);
    char **files = first < argc ? argv + first : only;
    w->n_sets = first < argc ? (size_t)(argc - first) : 1;
    w->sets = mem_zero(w->n_sets, sizeof *w->sets);
    for (size_t i = 0; i < w->n_sets; i++)
        if (!(w->sets[i] = dataset_open(files[i], &w->args->data, e)))
            err_die(TOOL, e);
    if (w->args->tokenizer) {
        char *folder = hub_folder(w->args->tokenizer, e);
        if (!folder || !(w->tokenizer = tokenizer_load(folder, e)))
            err_die(TOOL, e);
        free(folder);
    }
    if (w->args->fits && contexts_open(&w->contexts, w->args->fits, w->args->ignore_config, e))
        err_die(TOOL, e);
    json_t *extra = provenance(w->args, files, (int)w->n_sets, e);
    free(items);
    if (!extra || rec_open(&w->out, &w->args->common, TOOL, argc, argv, extra, e))
        err_die(TOOL, e);
}

static int run(const struct args *a, int argc, char **argv, int first)
{
    struct err e = {0};
    struct prep w = {.args = a, .choice = a->choice};
    w.log = (struct log){TOOL, a->common.quiet ? 0 : a->common.verbose ? 2 : 1};
    open_all(&w, argc, argv, first, &e);
    struct progress p;
    progress_start(&p, &w.log, a->common.progress, "prompts", 0);
    int bad = 0;
    int64_t passed_over = 0;
    for (size_t i = 0; i < w.n_sets; i++) {
        bad = bad || read_set(&w, w.sets[i], &p, &e);
        passed_over += dataset_passed_over(w.sets[i]);
        if (!bad && dataset_note(w.sets[i]))
            log_warn(&w.log, "W117", "%s", dataset_note(w.sets[i]));
    }
    for (size_t i = 0; i < w.n_sets; i++)
        dataset_close(w.sets[i]);
    progress_end(&p);
    free(w.sets);
    places_free(&w.ids);
    tokenizer_free(w.tokenizer);
    contexts_close(&w.contexts);
    bad = bad || write_chosen(&w, &e);
    int64_t written = w.out.records - w.out.failed;
    if (!bad && written == 0)
        bad = err_set(&e, EXIT_BAD_DATA, "no prompts: %lld read, %lld skipped, %lld broken%s%s",
                      (long long)w.read, (long long)passed_over, (long long)w.broken,
                      w.broken ? "; the first: " : "", w.first_broken);
    if (bad) {
        rec_abandon(&w.out);
        err_die(TOOL, &e);
    }
    if (rec_close(&w.out, "ok", &e))
        err_die(TOOL, &e);
    log_more(&w.log, "%lld prompts written of %lld read", (long long)written, (long long)w.read);
    if (passed_over)
        log_note(&w.log, "%lld rows skipped: no text, too few turns (--min-turns), not begun by "
                 "the user, or nothing left for a reference", (long long)passed_over);
    if (w.too_long)
        log_note(&w.log, "%lld prompts left out: with %lld tokens for the answer they do not fit "
                 "%s", (long long)w.too_long, (long long)a->room, a->fits);
    if (w.broken)
        log_warn(&w.log, "W116", "%lld broken records%s", (long long)w.broken,
                 a->skip_broken ? " left out"
                                : " became error records (--skip-broken leaves them out)");
    return w.out.failed ? EXIT_FAILED_RECORDS : EXIT_OK;
}

/* ---- options ---- */

static const char EXAMPLES[] =
    "prep-prompts --count 64 ShareGPT_V3.json > prompts.ndjson\n"
    "prep-prompts --count 64 -e '*wiki.test.raw' wikitext-2-raw-v1.zip\n"
    "prep-prompts --task gsm8k --shots 5 > prompts.ndjson\n"
    "prep-prompts --format jsonl --field question --tokens 32:64 -m DIR gsm8k.jsonl\n";

static const char NOTES[] =
    "Formats (--format auto looks at the first record or line):\n"
    "  sharegpt  {\"id\", \"conversations\": [{\"from\", \"value\"}, ...]} with --min-turns\n"
    "            turns or more, the first by human or user. Turn 1 is the text, turn\n"
    "            2 the reference.\n"
    "  wikitext  each line that is not a heading is a paragraph; the first half of\n"
    "            its words is the text, the rest the reference\n"
    "  jsonl     one object a line. An instruction with an `input` becomes the prompt\n"
    "            that Alpaca was trained on; its `source` ends in :alpaca-input.\n"
    "  text      paragraphs between blank lines\n"
    "  prompts   {\"id\", \"text\" or \"prompt_ids\" or \"messages\", ...}: all fields are\n"
    "            kept. If messages end with the assistant's answer, they are cut\n"
    "            before it and the answer is the reference. messages need no id.\n"
    "An answer \"... #### 42\" gives the reference and the answer 42.\n"
    "\n"
    "--task makes the prompts of a known task (data/tasks.ndjson) and names it in\n"
    "`task`; score-exact then applies the task's rule, and score-ppl --mode choice\n"
    "scores its `choices`. The items come from the operands, else from the user's\n"
    "cache; a command that fetches them is printed where they are missing.\n"
    "\n"
    "Files named .csv or .tsv, parquet, Arrow and UTF-16 are refused; the message\n"
    "has a command that converts them. Files may be packed as .gz .bz2 .xz .zst, or\n"
    "as the only member, or that of --member, of a .zip or .tar.*.\n"
    "A byte order mark at the start is skipped and \\r\\n ends a line; all other bytes\n"
    "stay as they are.\n"
    "--count N keeps the N prompts with the smallest hash of (seed, id), in input\n"
    "order: the same prompts for any order of the data. Ids come from the data, else\n"
    "from the file name and the position; a repeated id is an error. A broken record\n"
    "(not JSON, not UTF-8, a NUL byte, a missing field) becomes an error record, and\n"
    "the exit code is 1.\n"
    "--tokens counts the text alone, without a chat template or BOS; --fits counts\n"
    "the whole input of each model, with its chat template.\n";

#define HUGE_INT 9007199254740991.0

static void check_split(const struct tool *t, struct args *a)
{
    if (!a->split)
        return;
    a->data.split_set = 1;
    a->data.split_words = !strcmp(a->split, "none") ? DATASET_NO_SPLIT : DATASET_HALF;
    if (strcmp(a->split, "none") && strcmp(a->split, "half") &&
        opt_list(a->split, &a->data.split_words, 1, 1, 1 << 30) != 1)
        opt_usage(t, "--split: expected none, half or a number of words, got '%s'", a->split);
}

static void check(const struct tool *t, struct args *a, int argc, char **argv, int first)
{
    check_split(t, a);
    if (!a->tokens != !a->tokenizer)
        opt_usage(t, "--tokens and --tokenizer need each other");
    if (a->room && !a->fits)
        opt_usage(t, "--room needs --fits");
    if (a->count && a->per_task)
        opt_usage(t, "--count and --per-task exclude each other");
    struct err e = {0};
    a->choice = (struct choice){.count = a->count, .seed = (uint64_t)a->common.seed};
    if (a->per_task && choice_per_task(&a->choice, a->per_task, &e))
        opt_usage(t, "--per-task: %s", e.text);
    if (a->tokens) {
        char list[64] = "";
        snprintf(list, sizeof list, "%s", a->tokens);
        char *colon = strchr(list, ':');
        if (colon)
            *colon = ',';
        if (opt_list(list, a->token_range, 2, 0, 1 << 30) != 2 ||
            a->token_range[0] > a->token_range[1])
            opt_usage(t, "--tokens: expected LO:HI with LO <= HI, got '%s'", a->tokens);
    }
    for (int i = first; i < argc; i++)
        if (file_same(argv[i], a->common.output))
            opt_usage(t, "%s is both input and output", argv[i]);
    if ((a->tasks || a->shots != TASK_SHOTS) && !a->task)
        opt_usage(t, "--shots and --tasks need --task");
    const struct dataset_options *d = &a->data;
    if (a->task && (strcmp(d->format, "auto") || d->text_field || d->reference_field ||
                    d->answer_field || d->task_field))
        opt_usage(t, "--task sets the format and the fields: expected no --format, --field, "
                  "--reference-field, --answer-field or --task-field");
    if (a->task && !(a->data.task = task_open(a->task, a->tasks, a->shots, &e)))
        err_die(TOOL, &e);
    if (a->task) {
        a->data.id_field = a->data.id_field ? a->data.id_field : task_id_field(a->data.task);
        a->data.format = "jsonl";
    }
    if (first >= argc && !a->task && isatty(STDIN_FILENO))
        opt_usage(t, "no files, and standard input is a terminal");
}

#define FORMATS "auto|sharegpt|wikitext|jsonl|text|prompts"
#define TEXT(name, letter, to, arg_name, text)                                                  \
    {name, letter, OPT_TEXT, to, .arg = arg_name, .help = text}
#define COUNT(name, letter, to, text)                                                           \
    {name, letter, OPT_INT, to, 1, HUGE_INT, .arg = "N", .help = text}
#define FLAG(name, to, text) {name, 0, OPT_FLAG, to, .help = text}

int main(int argc, char **argv)
{
    struct args a = {
        .common = COMMON_DEFAULTS,
        .shots = TASK_SHOTS,
        .data = {.format = "auto", .max_line = 64 << 20, .min_turns = 2},
    };
    struct dataset_options *d = &a.data;
    const struct opt options[] = {
        {"format", 'f', OPT_CHOICE, &d->format, .choices = FORMATS,
         .help = "format of the files; auto looks at the first record or line (auto)"},
        TEXT("task", 0, &a.task, "NAME[:PART]",
             "prompts of a known task: see below"),
        {"shots", 0, OPT_INT, &a.shots, 0, 64, .arg = "N",
         .help = "task: examples that each prompt shows (as the task's row says)"},
        TEXT("tasks", 0, &a.tasks, "FILE", "task: rows of tasks (data/tasks.ndjson)"),
        TEXT("member", 'e', &d->member, "GLOB", "file to read from an archive"),
        COUNT("count", 'n', &a.count, "choose N prompts (all)"),
        TEXT("per-task", 0, &a.per_task, "N|TASK=N,...",
             "choose N prompts of each task, or of the tasks that are named"),
        FLAG("allow-fewer", &a.allow_fewer, "accept fewer prompts than --count or --per-task"),
        TEXT("tokens", 't', &a.tokens, "LO:HI",
             "choose only prompts of LO to HI tokens, inclusive; needs --tokenizer"),
        TEXT("tokenizer", 'm', &a.tokenizer, "MODEL",
             "tokenizer that --tokens counts with: folder or hub name"),
        TEXT("fits", 0, &a.fits, "MODEL[,MODEL...]",
             "choose only prompts that fit the context of these models, with --room to spare"),
        IGNORE_CONFIG_OPTION(a.ignore_config),
        COUNT("room", 0, &a.room, "tokens that --fits reserves for the answer (0)"),
        TEXT("split", 0, &a.split, "none|half|N",
             "words of a paragraph that become the prompt; the rest is the reference (wikitext: "
             "half, text: none)"),
        COUNT("min-turns", 0, &d->min_turns, "sharegpt: skip conversations with fewer turns (2)"),
        TEXT("field", 0, &d->text_field, "NAME",
             "jsonl: field with the prompt (text, prompt, question or instruction)"),
        TEXT("reference-field", 0, &d->reference_field, "NAME",
             "jsonl: field with a good response (reference, canonical_solution, completion, "
             "response or output)"),
        TEXT("answer-field", 0, &d->answer_field, "NAME",
             "jsonl: field with the exact answer (answer)"),
        TEXT("id-field", 0, &d->id_field, "NAME", "jsonl: field with the id (id or task_id)"),
        TEXT("task-field", 0, &d->task_field, "NAME",
             "jsonl: field with the kind of task (task)"),
        FLAG("renumber", &d->renumber, "make ids from the position, even if the data has ids"),
        FLAG("skip-broken", &a.skip_broken,
             "leave broken records out: no error records, exit status 0"),
        {"max-bytes", 0, OPT_BYTES, &d->max_bytes, 1, HUGE_INT, .arg = "BYTES",
         .help = "refuse data larger than this when unpacked (packed data: 8G)"},
        {"max-line", 0, OPT_BYTES, &d->max_line, 1, 1 << 30, .arg = "BYTES",
         .help = "longest object, line or paragraph (64M)"},
        OPT_COMMON(a.common), {0}};
    const struct tool t = {TOOL, "data sets in, prompt records out", EXAMPLES, NOTES, options,
                           NEEDS_NOTHING};
    int first = opt_parse(&t, argc, argv);
    check(&t, &a, argc, argv, first);
    int code = run(&a, argc, argv, first);
    task_close((struct task *)(uintptr_t)a.data.task);
    return code;
}
