/* score-exact - generation records with an `answer` in, quality records "accuracy" out: 1 when the
 * response holds the answer, 0 when not, and one summary per configuration.
 *
 * Numbers are compared as texts in a normal form (no thousands separators, no leading zeros, no
 * trailing zeros after the point), so that no answer is ever rounded into another.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/quality.h"
#include "lib/base/buf.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/record/take.h"
#include "lib/stat/bootstrap.h"

struct args { struct common common; const char *match; int64_t max_failed; };

struct tally { /* one configuration and workload */
    json_t *about; /* what its records carry; owned */
    int64_t hits, n, unscored; /* unscored: random weights */
};

struct scorer {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct tally *tally;
    size_t n, cap;
    json_t *index;  /* point and workload -> place in tally */
    json_t *scored; /* point, workload, id, seed -> true */
    struct buf answer, found;
    int64_t no_answer, repeats, not_ok;
};

/* A number starts at s[i]: its length, 0 when there is none. Digits, commas between groups of
 * three, one point with digits behind it. */
static size_t number_length(const char *s, size_t i)
{
    size_t n = 0, digits = 0;
    if (!isdigit((unsigned char)s[i]))
        return 0;
    while (isdigit((unsigned char)s[i + digits]))
        digits++;
    n = digits;
    while (digits <= 3 && s[i + n] == ',' && isdigit((unsigned char)s[i + n + 1]) &&
           isdigit((unsigned char)s[i + n + 2]) && isdigit((unsigned char)s[i + n + 3]) &&
           !isdigit((unsigned char)s[i + n + 4]))
        n += 4;
    if (s[i + n] == '.' && isdigit((unsigned char)s[i + n + 1]))
        for (n++; isdigit((unsigned char)s[i + n]);)
            n++;
    return n;
}

/* The number s[0..n-1] in normal form, after its sign. */
static void normalize(struct buf *out, int minus, const char *s, size_t n)
{
    size_t start;
    int point = memchr(s, '.', n) != NULL;
    buf_clear(out);
    for (; n > 1 && (*s == '0' || *s == ',') && s[1] != '.'; s++)
        n--;
    if (minus)
        buf_char(out, '-');
    start = out->len;
    for (size_t i = 0; i < n; i++)
        if (s[i] != ',')
            buf_char(out, s[i]);
    while (point && out->data[out->len - 1] == '0')
        out->data[--out->len] = 0;
    if (point && out->data[out->len - 1] == '.')
        out->data[--out->len] = 0;
    if (minus && out->len == start + 1 && out->data[start] == '0') {
        buf_clear(out); /* minus nought */
        buf_char(out, '0');
    }
}

/* First or last number of a text. A minus sign belongs to it unless a letter or digit stands before
 * ("5-3" holds 5 and 3). Digits inside a word ("b12") are no number. 0: there is none. */
static int find_number(const char *s, int last, struct buf *out)
{
    int any = 0;
    for (size_t i = 0, n; s[i]; i += n ? n : 1) {
        n = number_length(s, i);
        unsigned char before = i ? (unsigned char)s[i - 1] : ' ';
        if (!n || isalpha(before) || before == '_')
            continue;
        unsigned char ahead = i > 1 ? (unsigned char)s[i - 2] : ' ';
        normalize(out, before == '-' && !isalnum(ahead), s + i, n);
        any = 1;
        if (!last)
            break;
    }
    return any;
}

static void trim(const char *s, struct buf *out)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        n--;
    buf_clear(out);
    buf_put(out, s, n);
}

/* 1 right, 0 wrong, -1: *e filled (the answer cannot be matched this way). */
static int judge(struct scorer *s, const char *answer, const char *text, struct err *e)
{
    if (!strcmp(s->a.match, "exact") || !strcmp(s->a.match, "contains")) {
        trim(answer, &s->answer);
        trim(text, &s->found);
        if (!s->answer.len)
            return err_set(e, EXIT_BAD_DATA, "answer: expected a text, got an empty one");
        return *s->a.match == 'e' ? !strcmp(s->answer.data, s->found.len ? s->found.data : "")
                                  : s->found.len && strstr(s->found.data, s->answer.data) != NULL;
    }
    if (!find_number(answer, 1, &s->answer))
        return err_set(e, EXIT_BAD_DATA, "answer: expected a number for --match=%s, got '%.40s'",
                       s->a.match, answer);
    return find_number(text, *s->a.match == 'l', &s->found) &&
           !strcmp(s->answer.data, s->found.data);
}

static struct tally *find_tally(struct scorer *s, const json_t *r)
{
    char *key = mem_format("%s\n%s", about_point(r), about_workload(r));
    const json_t *at = json_object_get(s->index, key);
    size_t place = at ? (size_t)json_integer_value(at) : s->n;
    if (!at) {
        json_object_set_new(s->index, key, json_integer((json_int_t)place));
        MEM_GROW(s->tally, s->n, s->cap);
        s->tally[s->n++] = (struct tally){.about = about_carried(r)};
    }
    free(key);
    return &s->tally[place];
}

/* 1 when this point, workload, id and seed were scored before: another round of the same prompt. */
static int is_repeat(struct scorer *s, const json_t *r)
{
    json_t *place = json_pack("[s, s, O, O?]", about_point(r), about_workload(r),
                              json_object_get(r, "id"), json_object_get(r, "seed"));
    char *key = json_dumps(place, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(place);
    if (!key)
        err_machine(__FILE__, __LINE__, "no memory for a key");
    int had = json_object_get(s->scored, key) != NULL;
    json_object_set_new(s->scored, key, json_true());
    free(key);
    return had;
}

static int score(struct scorer *s, const json_t *r, const char *answer, struct err *e)
{
    const char *text = rec_text(r, "text_to_eos");
    text = text ? text : rec_text(r, "text");
    int random = json_is_true(json_object_get(r, "weights_random"));
    struct tally *t = find_tally(s, r);
    int right = random ? 0 : text ? judge(s, answer, text, e) : -1;
    if (right < 0)
        return err_set(e, EXIT_BAD_DATA, "text: expected a text, got none");
    json_t *q = quality_of(t->about, r, "accuracy", "higher");
    if (random)
        rec_set_number(q, "value", (double)NAN, "random weights");
    else
        rec_set_int(q, "value", right);
    t->unscored += random;
    t->n += !random;
    t->hits += right;
    return rec_write(&s->out, "quality", q, e);
}

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct scorer *s = ctx;
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    const json_t *id = json_object_get(r, "id"), *answer = json_object_get(r, "answer");
    if (strcmp(rec_kind(r), "generation"))
        return 0;
    if (!about_point(r) || (!json_is_string(id) && !json_is_integer(id)))
        return err_set(e, EXIT_BAD_DATA, "config, id: expected texts, got none");
    if ((status && strcmp(status, "ok")) || (phase && strcmp(phase, "timed"))) {
        s->not_ok++;
        return 1;
    }
    if (!answer || json_is_null(answer)) {
        s->no_answer++;
        return 1;
    }
    if (is_repeat(s, r)) {
        s->repeats++;
        return 1;
    }
    char *text = json_is_string(answer) ? mem_text(json_string_value(answer))
                                        : json_dumps(answer, JSON_ENCODE_ANY);
    int bad = score(s, r, text ? text : "", e);
    free(text);
    return bad ? -1 : 1;
}

static int by_about(const void *a, const void *b)
{
    return about_order(((const struct tally *)a)->about, ((const struct tally *)b)->about);
}

static int write_summary(struct scorer *s, const struct tally *t, struct err *e)
{
    const char *why = t->unscored ? "random weights" : "n<1";
    struct interval v = bootstrap_wilson((double)t->hits, (double)t->n, 0.95);
    char *method = mem_format("%s, Wilson interval", s->a.match);
    json_t *q = quality_summary(t->about, "accuracy", "higher", v, t->n, 1, why, method);
    free(method);
    return rec_write(&s->out, "quality", q, e);
}

static void free_scorer(struct scorer *s)
{
    for (size_t i = 0; i < s->n; i++)
        json_decref(s->tally[i].about);
    free(s->tally);
    json_decref(s->index);
    json_decref(s->scored);
    buf_free(&s->answer);
    buf_free(&s->found);
}

static const char examples[] =
    "score-exact generations.ndjson > quality.ndjson\n"
    "gen-llama -m llama-demo < sums.ndjson | score-exact --match=last-number\n";
static const char notes[] =
    "Scored: timed records with status ok and an `answer`, each point, id and seed once.\n"
    "  last-number   the last number in the response equals the last number in the answer\n"
    "  first-number  the first number in the response does\n"
    "  contains      the response contains the answer, letter by letter\n"
    "  exact         the response is the answer, apart from white space around it\n"
    "Numbers may have a minus sign, thousands commas and decimals: 1,050.0 is 1050.\n";

static void check(struct scorer *s, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&s->out);
    err_die("score-exact", e);
}

int main(int argc, char **argv)
{
    struct scorer s = {.a = {.common = COMMON_DEFAULTS, .match = "last-number"}};
    const struct opt options[] = {
        {"match", 0, OPT_CHOICE, &s.a.match, .choices = "last-number|first-number|contains|exact",
         .help = "what counts as right (last-number)"},
        TAKE_OPTION(s.a.max_failed),
        OPT_COMMON(s.a.common),
        {0}};
    const struct tool tool = {"score-exact", "generation records with answers in, accuracy out",
                              examples, notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    s.log = (struct log){"score-exact", s.a.common.quiet ? 0 : 1 + s.a.common.verbose};
    s.index = json_object();
    s.scored = json_object();
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&s, !in, &e);
    check(&s, rec_open(&s.out, &s.a.common, "score-exact", argc, argv, NULL, &e), &e);
    check(&s, take_all(&s.seen, in, &s.out, &s.log, s.a.common.limit, take, &s, &e), &e);
    rec_read_close(in);
    if (!s.seen.taken && !s.seen.bad)
        check(&s, err_set(&e, EXIT_BAD_DATA, "no generation records in the input"), &e);
    if (s.n)
        qsort(s.tally, s.n, sizeof *s.tally, by_about);
    for (size_t i = 0; i < s.n; i++)
        check(&s, write_summary(&s, &s.tally[i], &e), &e);
    if (s.no_answer + s.repeats + s.not_ok)
        log_note(&s.log, "skipped: %lld without an answer, %lld further rounds, %lld not timed or "
                 "not ok", (long long)s.no_answer, (long long)s.repeats, (long long)s.not_ok);
    int code = take_verdict(&s.seen, &s.log, s.a.max_failed);
    check(&s, rec_close(&s.out, code ? "failed" : "ok", &e), &e);
    free_scorer(&s);
    return code;
}
