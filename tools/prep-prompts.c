/* prep-prompts - turns data sets into prompt records. lib/text/dataset.h defines the formats,
 * lib/text/choice.h chooses prompts.
 *
 * A broken record does not end the tool. It becomes an error record, or is left out with
 * --skip-broken, and is counted. */
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

enum { BROKEN_MOST = 1000000 }; /* after more broken records the tool ends if most are broken */

struct args {
    struct common common;
    struct dataset_options data;
    const char *split, *tokens, *tokenizer;
    const char *fits; /* models whose context a prompt must fit, with `room` tokens of answer */
    const char *ignore_config;
    int64_t count, room, token_range[2];
    const char *task, *tasks; /* --task: name of a task; --tasks: file of tasks */
    int64_t shots;
    const char *per_task; /* N, or TASK=N,TASK=N */
    struct choice choice; /* limits of --count or --per-task */
    int allow_fewer, skip_broken;
};

struct prep {
    const struct args *args;
    struct contexts contexts; /* contexts of the models of --fits */
    int64_t too_long;
    struct log log;
    struct rec_writer out;
    struct tokenizer *tokenizer;
    struct dataset **sets;
    size_t n_sets;
    struct places ids; /* ids read from the data, without those that a data set generates */
    struct choice choice;
    int64_t read, broken;
    char first_broken[1024]; /* reason of the first broken record */
};

static const char TOOL[] = "prep-prompts";

/* ---- choosing ---- */

static int is_choosing(const struct args *args)
{
    return args->count || args->per_task;
}

/* Returns 1 if the prompt is within --tokens or there is no --tokens, 0 if not, -1 with *e. */
static int has_length(const struct prep *prep, const json_t *prompt, struct err *e)
{
    if (!prep->tokenizer)
        return 1;
    const char *text = rec_text(prompt, "text");
    size_t n = json_array_size(json_object_get(prompt, "prompt_ids"));
    const json_t *messages = json_object_get(prompt, "messages");
    for (size_t i = 0; text || i < json_array_size(messages); i++) {
        struct ids ids = {0};
        const char *bytes = text ? text : rec_text(json_array_get(messages, i), "content");
        int bad = bytes &&
                  tokenizer_encode(prep->tokenizer, bytes, strlen(bytes), ENCODE_PLAIN, &ids, e);
        n += ids.n;
        ids_free(&ids);
        if (bad)
            return -1;
        if (text)
            break;
    }
    return (int64_t)n >= prep->args->token_range[0] && (int64_t)n <= prep->args->token_range[1];
}

/* Writes a prompt, or keeps it as a candidate; takes over the reference. Returns -1 for a broken
 * prompt or a failed write. */
static int take(struct prep *prep, json_t *prompt, struct err *e)
{
    const struct args *args = prep->args;
    const char *task = args->per_task ? rec_text(prompt, "task") : NULL;
    int choosing = is_choosing(args);
    task = task ? task : "";
    int fits = !choosing || choice_open(&prep->choice, task, rec_text(prompt, "id"));
    if (fits)
        fits = has_length(prep, prompt, e);
    if (fits > 0 && !contexts_fit(&prep->contexts, prompt, (size_t)prep->args->room)) {
        prep->too_long++;
        fits = 0;
    }
    if (fits <= 0)
        json_decref(prompt);
    else if (choosing)
        choice_add(&prep->choice, task, prompt);
    else
        return rec_write(&prep->out, "prompt", prompt, e);
    return fits < 0 ? -1 : 0;
}

/* Writes the chosen prompts in the order of the input. */
static int write_chosen(struct prep *prep, struct err *e)
{
    struct choice *choice = &prep->choice;
    int bad = is_choosing(prep->args) && choice_finish(choice, prep->args->allow_fewer, e);
    for (size_t i = 0; i < choice->n && !bad; i++)
        bad = rec_write(&prep->out, "prompt", json_incref(choice->v[i].record), e);
    choice_free(choice);
    return bad ? -1 : 0;
}

/* ---- reading ---- */

/* Notes the id of a prompt. Returns -1 if another prompt had this id. */
static int remember(struct prep *prep, const struct dataset *dataset, const json_t *prompt,
                    struct err *e)
{
    const char *id = rec_text(prompt, "id");
    const size_t n = json_string_length(json_object_get(prompt, "id"));
    const int made = dataset_makes_id(dataset);
    int clashes = places_has(&prep->ids, id, n);
    for (size_t i = 0; i < prep->n_sets && !clashes; i++)
        clashes = !(made && prep->sets[i] == dataset) && dataset_made(prep->sets[i], id);
    if (clashes)
        return err_set(e, EXIT_BAD_DATA, "%s:%lld: id '%.200s' is there twice; ids must be unique "
                       "(--renumber makes new ones from the position)", dataset_name(dataset),
                       (long long)dataset_line(dataset), id);
    if (!made)
        places_of(&prep->ids, id, n);
    return 0;
}

/* Counts a broken record, and writes an error record unless --skip-broken is given. Returns -1 if
 * writing fails, or if so many records are broken that the data set must have another format. */
static int broken(struct prep *prep, const struct dataset *dataset, const json_t *id,
                  const struct err *what, struct err *e)
{
    char where[1200];
    if (!prep->broken)
        memcpy(prep->first_broken, what->text, sizeof prep->first_broken);
    if (prep->broken++ < REC_BAD_SAID)
        log_more(&prep->log, "skipped: %s", what->text);
    if (prep->broken > BROKEN_MOST && prep->broken > prep->read)
        return err_set(e, EXIT_BAD_DATA, "%lld broken records and %lld others; the first: %s",
                       (long long)prep->broken, (long long)prep->read, prep->first_broken);
    if (prep->args->skip_broken)
        return 0;
    snprintf(where, sizeof where, "%s:%lld", dataset_name(dataset),
             (long long)dataset_line(dataset));
    return rec_bad(&prep->out, what, where, id, e);
}

static int read_set(struct prep *prep, struct dataset *dataset, struct progress *progress,
                    struct err *e)
{
    const struct common *common = &prep->args->common;
    for (;;) {
        json_t *prompt, *id = NULL;
        struct err why = {0};
        if (common->limit && prep->read >= common->limit)
            return 0;
        int got = dataset_next(dataset, &prompt, &why);
        if (got == 0)
            return 0;
        if (got < 0 && (why.code != EXIT_BAD_DATA || dataset_broken(dataset)))
            return err_set(e, why.code, "%s", why.text);
        if (got > 0) {
            prep->read++;
            if (remember(prep, dataset, prompt, e)) {
                json_decref(prompt);
                return -1;
            }
            id = json_incref(json_object_get(prompt, "id"));
            got = take(prep, prompt, &why);
        }
        int bad = got < 0 && why.code == EXIT_BAD_DATA
                        ? broken(prep, dataset, id ? id : dataset_id(dataset), &why, e) : got;
        json_decref(id);
        if (bad)
            return err_set(e, why.code, "%s", why.text);
        progress_at(progress, prep->read, NULL);
    }
}

/* The path, size and SHA-256 of each input, for the meta record. A pipe has only a name. */
static json_t *provenance(const struct args *args, char **files, int n, struct err *e)
{
    json_t *list = json_array();
    for (int i = 0; i < n && !args->common.no_meta; i++) {
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

static void open_all(struct prep *prep, int argc, char **argv, int first, struct err *e)
{
    static char standard[] = "-";
    char *items = NULL, *only[] = {standard};
    const struct task *task = prep->args->data.task;
    if (task && first == argc && !(only[0] = items = task_items(task, e)))
        err_die(TOOL, e);
    char **files = first < argc ? argv + first : only;
    prep->n_sets = first < argc ? (size_t)(argc - first) : 1;
    prep->sets = mem_zero(prep->n_sets, sizeof *prep->sets);
    for (size_t i = 0; i < prep->n_sets; i++)
        if (!(prep->sets[i] = dataset_open(files[i], &prep->args->data, e)))
            err_die(TOOL, e);
    if (prep->args->tokenizer) {
        char *folder = hub_folder(prep->args->tokenizer, e);
        if (!folder || !(prep->tokenizer = tokenizer_load(folder, e)))
            err_die(TOOL, e);
        free(folder);
    }
    if (prep->args->fits &&
        contexts_open(&prep->contexts, prep->args->fits, prep->args->ignore_config, e))
        err_die(TOOL, e);
    json_t *extra = provenance(prep->args, files, (int)prep->n_sets, e);
    free(items);
    if (!extra || rec_open(&prep->out, &prep->args->common, TOOL, argc, argv, extra, e))
        err_die(TOOL, e);
}

/* Says which items the task leaves out, and why. */
static void say_left_out(struct log *log, const struct task *task)
{
    const char *why;
    json_t *n;
    json_t *all = task ? (json_t *)(uintptr_t)task_left_out(task) : NULL;
    json_object_foreach(all, why, n)
        log_note(log, "%lld items left out: %s", (long long)json_integer_value(n), why);
}

static int run(const struct args *args, int argc, char **argv, int first)
{
    struct err e = {0};
    struct prep prep = {.args = args, .choice = args->choice};
    prep.log = (struct log){TOOL, args->common.quiet ? 0 : args->common.verbose ? 2 : 1};
    open_all(&prep, argc, argv, first, &e);
    struct progress progress;
    progress_start(&progress, &prep.log, args->common.progress, "prompts", 0);
    int bad = 0;
    int64_t passed_over = 0;
    for (size_t i = 0; i < prep.n_sets; i++) {
        bad = bad || read_set(&prep, prep.sets[i], &progress, &e);
        passed_over += dataset_passed_over(prep.sets[i]);
        if (!bad && dataset_note(prep.sets[i]))
            log_warn(&prep.log, "W117", "%s", dataset_note(prep.sets[i]));
    }
    for (size_t i = 0; i < prep.n_sets; i++)
        dataset_close(prep.sets[i]);
    progress_end(&progress);
    free(prep.sets);
    places_free(&prep.ids);
    tokenizer_free(prep.tokenizer);
    contexts_close(&prep.contexts);
    bad = bad || write_chosen(&prep, &e);
    int64_t written = prep.out.records - prep.out.failed;
    if (!bad && written == 0)
        bad = err_set(&e, EXIT_BAD_DATA, "no prompts: %lld read, %lld skipped, %lld broken%s%s",
                      (long long)prep.read, (long long)passed_over, (long long)prep.broken,
                      prep.broken ? "; the first: " : "", prep.first_broken);
    if (bad) {
        rec_abandon(&prep.out);
        err_die(TOOL, &e);
    }
    if (rec_close(&prep.out, "ok", &e))
        err_die(TOOL, &e);
    log_more(&prep.log, "%lld prompts written of %lld read", (long long)written,
             (long long)prep.read);
    if (passed_over)
        log_note(&prep.log, "%lld rows skipped: no text, too few turns (--min-turns), not begun by "
                 "the user, or nothing left for a reference", (long long)passed_over);
    say_left_out(&prep.log, args->data.task);
    if (prep.too_long)
        log_note(&prep.log,
                 "%lld prompts left out: with %lld tokens for the answer they do not fit "
                 "%s", (long long)prep.too_long, (long long)args->room, args->fits);
    if (prep.broken)
        log_warn(&prep.log, "W116", "%lld broken records%s", (long long)prep.broken,
                 args->skip_broken ? " left out"
                                   : " became error records (--skip-broken leaves them out)");
    return prep.out.failed ? EXIT_FAILED_RECORDS : EXIT_OK;
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

static void check_split(const struct tool *tool, struct args *args)
{
    if (!args->split)
        return;
    args->data.split_set = 1;
    args->data.split_words = !strcmp(args->split, "none") ? DATASET_NO_SPLIT : DATASET_HALF;
    if (strcmp(args->split, "none") && strcmp(args->split, "half") &&
        opt_list(args->split, &args->data.split_words, 1, 1, 1 << 30) != 1)
        opt_usage(tool, "--split: expected none, half or a number of words, got '%s'", args->split);
}

static void check(const struct tool *tool, struct args *args, int argc, char **argv, int first)
{
    check_split(tool, args);
    if (!args->tokens != !args->tokenizer)
        opt_usage(tool, "--tokens and --tokenizer need each other");
    if (args->room && !args->fits)
        opt_usage(tool, "--room needs --fits");
    if (args->count && args->per_task)
        opt_usage(tool, "--count and --per-task exclude each other");
    struct err e = {0};
    args->choice = (struct choice){.count = args->count, .seed = (uint64_t)args->common.seed};
    if (args->per_task && choice_per_task(&args->choice, args->per_task, &e))
        opt_usage(tool, "--per-task: %s", e.text);
    if (args->tokens) {
        char list[64] = "";
        snprintf(list, sizeof list, "%s", args->tokens);
        char *colon = strchr(list, ':');
        if (colon)
            *colon = ',';
        if (opt_list(list, args->token_range, 2, 0, 1 << 30) != 2 ||
            args->token_range[0] > args->token_range[1])
            opt_usage(tool, "--tokens: expected LO:HI with LO <= HI, got '%s'", args->tokens);
    }
    for (int i = first; i < argc; i++)
        if (file_same(argv[i], args->common.output))
            opt_usage(tool, "%s is both input and output", argv[i]);
    if ((args->tasks || args->shots != TASK_SHOTS) && !args->task)
        opt_usage(tool, "--shots and --tasks need --task");
    const struct dataset_options *options = &args->data;
    if (args->task && (strcmp(options->format, "auto") || options->text_field ||
                       options->reference_field || options->answer_field || options->task_field))
        opt_usage(tool, "--task sets the format and the fields: expected no --format, --field, "
                  "--reference-field, --answer-field or --task-field");
    if (args->task && !(args->data.task = task_open(args->task, args->tasks, args->shots, &e)))
        err_die(TOOL, &e);
    if (args->task) {
        args->data.id_field = args->data.id_field ? args->data.id_field
                                                  : task_id_field(args->data.task);
        args->data.format = "jsonl";
    }
    if (first >= argc && !args->task && isatty(STDIN_FILENO))
        opt_usage(tool, "no files, and standard input is a terminal");
}

#define FORMATS "auto|sharegpt|wikitext|jsonl|text|prompts"
#define TEXT(name, letter, to, arg_name, text)                                                  \
    {name, letter, OPT_TEXT, to, .arg = arg_name, .help = text}
#define COUNT(name, letter, to, text)                                                           \
    {name, letter, OPT_INT, to, 1, HUGE_INT, .arg = "N", .help = text}
#define FLAG(name, to, text) {name, 0, OPT_FLAG, to, .help = text}

int main(int argc, char **argv)
{
    struct args args = {
        .common = COMMON_DEFAULTS,
        .shots = TASK_SHOTS,
        .data = {.format = "auto", .max_line = 64 << 20, .min_turns = 2},
    };
    struct dataset_options *dataset_options = &args.data;
    const struct opt options[] = {
        {"format", 'f', OPT_CHOICE, &dataset_options->format, .choices = FORMATS,
         .help = "format of the files; auto looks at the first record or line (auto)"},
        TEXT("task", 0, &args.task, "NAME[:PART]", "prompts of a known task: see --help-all"),
        {"shots", 0, OPT_INT, &args.shots, 0, 64, .arg = "N",
         .help = "with --task: examples in each prompt (default: from the task's row in --tasks)"},
        TEXT("tasks", 0, &args.tasks, "FILE", "task: rows of tasks (data/tasks.ndjson)"),
        TEXT("member", 'e', &dataset_options->member, "GLOB", "file to read from an archive"),
        COUNT("count", 'n', &args.count, "choose N prompts (all)"),
        TEXT("per-task", 0, &args.per_task, "N|TASK=N,...",
             "choose N prompts of each task, or of the tasks that are named"),
        FLAG("allow-fewer", &args.allow_fewer, "accept fewer prompts than --count or --per-task"),
        TEXT("tokens", 't', &args.tokens, "LO:HI",
             "choose only prompts of LO to HI tokens, inclusive; needs --tokenizer"),
        TEXT("tokenizer", 'm', &args.tokenizer, "MODEL",
             "tokenizer that --tokens counts with: folder or hub name"),
        TEXT("fits", 0, &args.fits, "MODEL[,MODEL...]",
             "choose only prompts that fit the context of these models, with --room to spare"),
        IGNORE_CONFIG_OPTION(args.ignore_config),
        COUNT("room", 0, &args.room, "tokens that --fits reserves for the answer (0)"),
        TEXT("split", 0, &args.split, "none|half|N",
             "words of a paragraph that become the prompt; the rest is the reference (wikitext: "
             "half, text: none)"),
        COUNT("min-turns", 0, &dataset_options->min_turns,
              "sharegpt: skip conversations with fewer turns (2)"),
        TEXT("field", 0, &dataset_options->text_field, "NAME",
             "jsonl: field with the prompt (text, prompt, question or instruction)"),
        TEXT("reference-field", 0, &dataset_options->reference_field, "NAME",
             "jsonl: field with a good response (reference, canonical_solution, completion, "
             "response or output)"),
        TEXT("answer-field", 0, &dataset_options->answer_field, "NAME",
             "jsonl: field with the exact answer (answer)"),
        TEXT("id-field", 0, &dataset_options->id_field, "NAME",
             "jsonl: field with the id (id or task_id)"),
        TEXT("task-field", 0, &dataset_options->task_field, "NAME",
             "jsonl: field with the kind of task (task)"),
        FLAG("renumber", &dataset_options->renumber,
             "number the prompts by their position, even if the data set has ids"),
        FLAG("skip-broken", &args.skip_broken,
             "leave broken records out: no error records, exit status 0"),
        {"max-bytes", 0, OPT_BYTES, &dataset_options->max_bytes, 1, HUGE_INT, .arg = "BYTES",
         .help = "refuse data larger than this when unpacked (packed data: 8G)"},
        {"max-line", 0, OPT_BYTES, &dataset_options->max_line, 1, 1 << 30, .arg = "BYTES",
         .help = "longest object, line or paragraph (64M)"},
        OPT_COMMON(args.common),
        {0}};
    const struct tool tool = {TOOL, "data sets in, prompt records out", EXAMPLES, NOTES, options,
                              NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    check(&tool, &args, argc, argv, first);
    int code = run(&args, argc, argv, first);
    task_close((struct task *)(uintptr_t)args.data.task);
    return code;
}
