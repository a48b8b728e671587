/* score-exact - judges whether responses have the right answer: quality records "accuracy".
 *
 * Reads generation records with an `answer`. The value is 1 if the response is right, else 0. Each
 * configuration has a summary; with several tasks each task also has its own ("accuracy_copy"). A
 * task of data/tasks.ndjson has its own rule.
 *
 * Numbers are compared as texts in a normal form (no thousands separators, no leading zeros, no
 * trailing zeros after the point), so that no answer is ever rounded into another. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/score/quality.h"
#include "lib/analysis/rule.h"
#include "lib/analysis/score/scoring.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/setting/tasks.h"
#include "lib/stat/bootstrap.h"

enum { RIGHT, RULE, TASK, WIDTH, /* indices of a response's values */ TASKS = 16 };

struct known { const json_t *row; struct rule *rule; }; /* row: an element of scorer.rows */

struct scorer {
    struct scoring run;
    const char *match, *find, *table;
    json_t *rows; /* the table of tasks (tasks.h); NULL: not read yet */
    struct known *known;
    size_t n_known, cap_known;
    int64_t unrun; /* responses without a verdict */
    struct buf answer, found;
    char *task[TASKS]; /* names of the tasks, for the names of metrics; owned */
    size_t tasks;
    int64_t more_tasks; /* responses of tasks after the first TASKS */
};

/* The length of the number that begins at text[i], or 0 if there is none. A number has digits,
 * commas between groups of three, and at most one point, which digits follow. */
static size_t number_length(const char *text, size_t i)
{
    size_t n = 0, digits = 0;
    if (!isdigit((unsigned char)text[i]))
        return 0;
    while (isdigit((unsigned char)text[i + digits]))
        digits++;
    n = digits;
    while (digits <= 3 && text[i + n] == ',' && isdigit((unsigned char)text[i + n + 1]) &&
           isdigit((unsigned char)text[i + n + 2]) && isdigit((unsigned char)text[i + n + 3]) &&
           !isdigit((unsigned char)text[i + n + 4]))
        n += 4;
    if (text[i + n] == '.' && isdigit((unsigned char)text[i + n + 1]))
        for (n++; isdigit((unsigned char)text[i + n]);)
            n++;
    return n;
}

/* Appends the number text[0..n-1] in normal form. minus: 1 for a negative number. */
static void normalize(struct buf *out, int minus, const char *text, size_t n)
{
    size_t start;
    int point = memchr(text, '.', n) != NULL;
    buf_clear(out);
    for (; n > 1 && (*text == '0' || *text == ',') && text[1] != '.'; text++)
        n--;
    if (minus)
        buf_char(out, '-');
    start = out->len;
    for (size_t i = 0; i < n; i++)
        if (text[i] != ',')
            buf_char(out, text[i]);
    while (point && out->data[out->len - 1] == '0')
        out->data[--out->len] = 0;
    if (point && out->data[out->len - 1] == '.')
        out->data[--out->len] = 0;
    if (minus && out->len == start + 1 && out->data[start] == '0') {
        buf_clear(out); /* -0 is 0 */
        buf_char(out, '0');
    }
}

/* Finds the first or last number of a text. A minus sign is part of the number unless a letter
 * or digit comes before the sign ("5-3" has 5 and 3). Digits inside a word ("b12") are no number.
 * Returns 0 if there is no number. */
static int find_number(const char *text, int last, struct buf *out)
{
    int any = 0;
    for (size_t i = 0, n; text[i]; i += n ? n : 1) {
        n = number_length(text, i);
        unsigned char before = i ? (unsigned char)text[i - 1] : ' ';
        if (!n || isalpha(before) || before == '_')
            continue;
        unsigned char ahead = i > 1 ? (unsigned char)text[i - 2] : ' ';
        normalize(out, before == '-' && !isalnum(ahead), text + i, n);
        any = 1;
        if (!last)
            break;
    }
    return any;
}

static void trim(const char *text, struct buf *out)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    buf_clear(out);
    buf_put(out, text, n);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the items between commas, sorted: "{b, a}" and "b, a" give "a,b". */
static void put_items(const char *bytes, struct buf *out)
{
    struct buf text = {0}, item = {0};
    char **items = NULL;
    size_t n = 0, cap = 0;
    trim(bytes, &text);
    char *at = text.len ? text.data : NULL;
    if (text.len > 1 && *at == '{' && text.data[text.len - 1] == '}') {
        text.data[text.len - 1] = 0;
        at++;
    }
    while (at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = 0;
        trim(at, &item);
        MEM_GROW(items, n, cap);
        items[n++] = mem_text(item.len ? item.data : "");
        at = comma;
    }
    if (n)
        qsort(items, n, sizeof *items, by_text);
    buf_clear(out);
    for (size_t i = 0; i < n; i++) {
        buf_format(out, "%s%s", i ? "," : "", items[i]);
        free(items[i]);
    }
    free(items);
    buf_free(&item);
    buf_free(&text);
}

/* The rules, with the names that --match has for them. */
enum way { LAST_NUMBER, FIRST_NUMBER, CONTAINS, EXACT, ANY_ORDER, AUTO, OF_TASK };
static const char *const rules[] = {"last-number", "first-number", "contains", "exact",
                                    "any-order", "auto", "rule of the task"};

/* The rule that --match names; for "auto" the rule that fits the answer. */
static enum way way_for(struct scorer *scorer, const char *answer)
{
    enum way rule = LAST_NUMBER;
    while (strcmp(rules[rule], scorer->match))
        rule++;
    if (rule != AUTO)
        return rule;
    if (find_number(answer, 1, &scorer->answer))
        return LAST_NUMBER;
    trim(answer, &scorer->answer);
    return scorer->answer.len && *scorer->answer.data == '{' ? ANY_ORDER : EXACT;
}

static int judge_number(struct scorer *scorer, enum way rule, const char *answer, const char *text,
                        struct err *e)
{
    if (!find_number(answer, 1, &scorer->answer))
        return err_set(e, EXIT_BAD_DATA, "answer: expected a number for --match=%s, got '%.40s'",
                       rules[rule], answer);
    return find_number(text, rule == LAST_NUMBER, &scorer->found) &&
           !strcmp(scorer->answer.data, scorer->found.data);
}

/* Returns 1 for a right response, 0 for a wrong one, -1 with *e if the rule does not fit the
 * answer. */
static int judge(struct scorer *scorer, enum way rule, const char *answer, const char *text,
                 struct err *e)
{
    if (rule == LAST_NUMBER || rule == FIRST_NUMBER)
        return judge_number(scorer, rule, answer, text, e);
    void (*form)(const char *, struct buf *) = rule == ANY_ORDER ? put_items : trim;
    form(answer, &scorer->answer);
    form(text, &scorer->found);
    if (!scorer->answer.len)
        return err_set(e, EXIT_BAD_DATA, "answer: expected a text, got an empty one");
    return rule == CONTAINS
               ? scorer->found.len && strstr(scorer->found.data, scorer->answer.data) != NULL
               : !strcmp(scorer->answer.data, scorer->found.len ? scorer->found.data : "");
}

/* The index in scorer->task of the record's task. TASKS: no task, or too many tasks. */
static size_t task_of(struct scorer *scorer, const json_t *record)
{
    const char *task = rec_text(record, "task");
    if (!task || !*task)
        return TASKS;
    char *name = mem_text(task);
    for (char *at = name; *at; at++)
        *at = isalnum((unsigned char)*at) ? (char)tolower((unsigned char)*at) : '_';
    size_t i = 0;
    while (i < scorer->tasks && strcmp(scorer->task[i], name))
        i++;
    if (i == scorer->tasks && i < TASKS)
        scorer->task[scorer->tasks++] = name;
    else
        free(name);
    scorer->more_tasks += i == TASKS;
    return i;
}

/* Sets *rule to the rule of the record's task if --match is auto and the task is known, else to
 * NULL. */
static int find_rule(struct scorer *scorer, const json_t *record, struct rule **rule, struct err *e)
{
    const char *task = strcmp(scorer->match, "auto") ? NULL : rec_text(record, "task");
    *rule = NULL;
    if (!task)
        return 0;
    if (!scorer->rows && !(scorer->rows = tasks_read(scorer->table, e)))
        return -1;
    const json_t *row = tasks_find(scorer->rows, task);
    for (size_t i = 0; row && i < scorer->n_known && !*rule; i++)
        *rule = scorer->known[i].row == row ? scorer->known[i].rule : NULL;
    if (!row || *rule)
        return 0;
    if (!(*rule = rule_open(row, scorer->find, e)))
        return -1;
    MEM_GROW(scorer->known, scorer->n_known, scorer->cap_known);
    scorer->known[scorer->n_known++] = (struct known){row, *rule};
    return 0;
}

/* Judges a response. Returns 1 if there is no verdict, -1 with *e on an error. */
static int match(struct scorer *scorer, const json_t *record, const struct response *of,
                 const char *answer, double *values, struct err *e)
{
    struct rule *own;
    if (find_rule(scorer, record, &own, e))
        return -1;
    enum way rule = own ? OF_TASK : way_for(scorer, answer);
    int right = own ? rule_judge(own, answer, of->text, &scorer->run.why, e)
                    : judge(scorer, rule, answer, of->text, e);
    scorer->unrun += right == RULE_NONE;
    if (right < 0 || right == RULE_NONE)
        return right < 0 ? -1 : 1;
    values[RIGHT] = right;
    values[RULE] = rule;
    values[TASK] = (double)task_of(scorer, record);
    return 0;
}

static int score(void *ctx, const json_t *record, const struct response *of, double *v,
                 struct err *e)
{
    char *text = json_is_string(of->wanted) ? mem_text(json_string_value(of->wanted))
                                            : json_dumps(of->wanted, JSON_ENCODE_ANY);
    int bad = match(ctx, record, of, text ? text : "", v, e);
    free(text);
    return bad;
}

/* Writes the summary of one task (TASKS: of all responses) in a group. If a task has all responses
 * of the group, its summary would repeat the one of the group, so it has none. */
static int write_summary(struct scorer *scorer, const struct response_group *group,
                         const char *metric, size_t task, struct err *e)
{
    double right = 0, n = 0;
    const char *rule = NULL;
    for (size_t i = 0; i < group->n; i++) {
        const double *sums = group->v + i * WIDTH;
        if (task < TASKS && sums[TASK] != (double)task)
            continue;
        const char *own = rules[(int)sums[RULE]];
        rule = !rule || rule == own ? own : scorer->match;
        right += sums[RIGHT];
        n++;
    }
    if (task < TASKS && (n < 1 || n >= (double)group->n))
        return 0;
    struct interval interval = bootstrap_wilson(right, n, 0.95);
    char *method = mem_format("%s, Wilson interval", rule ? rule : scorer->match);
    json_t *quality = quality_summary(group->about, metric, interval, (int64_t)n, 1,
                                      responses_why(group), method);
    free(method);
    return rec_write(&scorer->run.out, "quality", quality, e);
}

static int summarize(void *ctx, size_t group, struct err *e)
{
    struct scorer *scorer = ctx;
    const struct response_group *response_group = &scorer->run.responses.group[group];
    int bad = write_summary(scorer, response_group, "accuracy", TASKS, e);
    for (size_t k = 0; k < scorer->tasks && !bad; k++) {
        char *metric = mem_format("accuracy_%s", scorer->task[k]);
        bad = write_summary(scorer, response_group, metric, k, e);
        free(metric);
    }
    return bad;
}

static const char examples[] =
    "score-exact generations.ndjson > quality.ndjson\n"
    "score-exact --find strict gsm8k.ndjson > quality.ndjson\n"
    "gen-llama -m llama-demo < sums.ndjson | score-exact --match=last-number\n";
static const char notes[] =
    "Scored: timed records with status ok and an `answer`, each point, id and seed\n"
    "once. The rules of --match:\n"
    "  auto          the rule of the record's task, if that is in data/tasks.ndjson;\n"
    "                else last-number if the answer has a number, any-order if it\n"
    "                is in {braces}, else exact\n"
    "  last-number   the last number in the response equals the last one in the\n"
    "                answer\n"
    "  first-number  the first number in the response equals the last one in the\n"
    "                answer\n"
    "  contains      the response contains the answer, letter by letter\n"
    "  exact         the response is the answer; white space around it is ignored\n"
    "  any-order     response and answer have the same items between commas\n"
    "A task whose answers are programs runs them in a sandbox (bubblewrap, else\n"
    "namespaces of Linux): no network, no other process, a folder in memory, limits\n"
    "of time and memory. Without a sandbox the value is null, with the reason.\n"
    "Numbers may have a minus sign, thousands commas and decimals: 1,050.0 is 1050.\n";

int main(int argc, char **argv)
{
    static const char *const metric[] = {"accuracy"};
    struct scorer scorer = {.match = "auto",
                            .run = {.common = COMMON_DEFAULTS, .metric = metric, .metrics = 1,
                                    .whole = 1, .ctx = &scorer, .score = score,
                                    .summarize = summarize,
                                    .responses = {.wanted = "answer", .width = WIDTH}}};
    const struct opt options[] = {
        {"match", 0, OPT_CHOICE, &scorer.match,
         .choices = "auto|last-number|first-number|contains|exact|any-order",
         .help = "rule by which a response is right (auto)"},
        {"find", 0, OPT_TEXT, &scorer.find, .arg = "NAME",
         .help = "way to find the answer in a response, of those in the task's row "
                 "(the first)"},
        {"tasks", 0, OPT_TEXT, &scorer.table, .arg = "FILE",
         .help = "rows of tasks (data/tasks.ndjson)"},
        TAKE_OPTION(scorer.run.max_failed),
        OPT_COMMON(scorer.run.common),
        {0}};
    const struct tool tool = {"score-exact", "generation records with answers in, accuracy out",
                              examples, notes, options,
                              NEEDS_ALL /* programs of answers run in namespaces with mounts */};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    int code = scoring_run(&scorer.run, tool.name, argc, argv, first, &e);
    if (code < 0)
        err_die(tool.name, &e);
    if (scorer.more_tasks)
        log_note(&scorer.run.log, "%d tasks have their own accuracy; %lld answers of further tasks "
                 "count only in the overall accuracy", TASKS, (long long)scorer.more_tasks);
    if (scorer.unrun)
        log_warn(&scorer.run.log, "W203", "%lld responses have no verdict: %s",
                 (long long)scorer.unrun, scorer.run.why);
    for (size_t i = 0; i < scorer.n_known; i++)
        rule_close(scorer.known[i].rule);
    free(scorer.known);
    json_decref(scorer.rows);
    buf_free(&scorer.answer);
    buf_free(&scorer.found);
    for (size_t i = 0; i < scorer.tasks; i++)
        free(scorer.task[i]);
    return code;
}
