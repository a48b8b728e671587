/* agreement.c - see agreement.h. Every comparison returns 1: agrees, 0: differs, -1: not compared.
 * A value outside its own interval was altered, whatever the other run says. So each number in a
 * sentence is read together with the interval after it, and compared like a ratio. */
#include "lib/analysis/claim/agreement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/claim/statement.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double SAME_MACHINE = 1.1, OTHER_MACHINE = 2, MEMORY = 1.02;
/* Relative tolerances of qualities of equal answers. The judge may run on another instruction set
 * in the other run: the perplexity of one set of texts then differed by 0.05 %. */
static const double SAME_SCORE = 1e-6, SAME_JUDGEMENT = 2e-3;

struct both {
    int same_machine, same_answers;
    double within;           /* largest factor between two times */
};

/* ---- claims ---- */

static int same_text(const json_t *a, const json_t *b, const char *key)
{
    const char *x = rec_text(a, key), *y = rec_text(b, key);
    return x && y ? !strcmp(x, y) : x == y;
}

static const json_t *find_like(const json_t *list, const json_t *like)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(list, i, claim)
        if (same_text(claim, like, "name") && same_text(claim, like, "key") &&
            same_text(claim, like, "task") && same_text(claim, like, "quality_metric"))
            return claim;
    return NULL;
}

/* 1: both runs have hashes of answers, and all hashes that both have are equal. */
static int are_answers_same(const json_t *was, const json_t *now)
{
    const json_t *claim;
    size_t i;
    int n = 0;
    json_array_foreach(was, i, claim) {
        const json_t *like = rec_is(claim, "name", "answers") ? find_like(now, claim) : NULL;
        if (like && !same_text(claim, like, "sha256"))
            return 0;
        n += like != NULL;
    }
    return n > 0;
}

/* ---- numbers ---- */

struct number { double v, lo, hi; }; /* lo, hi NaN: no interval */

static struct number number_of(const json_t *claim)
{
    return (struct number){rec_number(claim, "value"), rec_number(claim, "lo"),
                           rec_number(claim, "hi")};
}

/* 0: the value is outside its own interval, so it was altered. */
static int is_sound(const struct number *number)
{
    const double slack = 1e-9 + 0.01 * fabs(number->v); /* for rounding in sentences */
    return !(number->v < number->lo - slack) && !(number->v > number->hi + slack);
}

static int is_within(const struct number *x, const struct number *y, double factor)
{
    return x->v > 0 && y->v > 0 && fabs(log(x->v / y->v)) <= log(factor);
}

static int overlaps(const struct number *x, const struct number *y)
{
    return x->lo <= y->hi && y->lo <= x->hi;
}

/* 1: two differences close to zero agree within 2 points. */
static int is_near(const struct number *x, const struct number *y)
{
    return is_sound(x) && is_sound(y) && fabs(x->v) < 0.1 && fabs(x->v - y->v) <= 0.02;
}

/* 1: times or rates agree. */
static int agree(const struct number *x, const struct number *y, double factor)
{
    return is_sound(x) && is_sound(y) && (is_within(x, y, factor) || overlaps(x, y));
}

/* ---- sentences ---- */

enum { NUMBERS = 64 };
/* A sentence as words and numbers. In `words`, # stands for each number except step counts; these
 * numbers are in number[n]. */
struct sentence { struct buf words; struct number number[NUMBERS]; size_t n; };

static int is_step_count(const char *behind)
{
    return !strncmp(behind, " step", 5);
}

static void put_number(struct sentence *sentence, double v)
{
    if (sentence->n < NUMBERS)
        sentence->number[sentence->n++] = (struct number){v, NAN, NAN};
    buf_char(&sentence->words, '#');
}

/* Reads "[1.31, 1.50]", the interval of the last number. Points become shares, because is_near()
 * expects shares. Returns the text after the interval, or NULL if there is no interval at `at`. */
static const char *take_interval(struct sentence *sentence, const char *at)
{
    char *end;
    double lo = strtod(at + 1, &end);
    if (end == at + 1 || *end != ',' || !sentence->n)
        return NULL;
    const char *second = end + 1;
    double hi = strtod(second, &end);
    if (end == second || *end != ']')
        return NULL;
    const double scale = strncmp(end, "] points", strlen("] points")) ? 1 : 0.01;
    struct number *last = &sentence->number[sentence->n - 1];
    *last = (struct number){scale * last->v, scale * lo, scale * hi};
    buf_text(&sentence->words, "[]");
    return end + 1;
}

static struct sentence read_sentence(const char *text)
{
    struct sentence sentence = {.n = 0};
    for (const char *at = text; *at;) {
        const char *behind = *at == '[' ? take_interval(&sentence, at) : NULL;
        char *end = NULL;
        const int sign = *at == '-' && at > text && at[-1] == ' ';
        double number = at[sign] >= '0' && at[sign] <= '9' ? strtod(at, &end) : 0;
        if (behind)
            at = behind;
        else if (end && end > at && !is_step_count(end)) {
            put_number(&sentence, number);
            at = end;
        } else if (end && end > at) {
            buf_put(&sentence.words, at, (size_t)(end - at));
            at = end;
        } else
            buf_char(&sentence.words, *at++);
    }
    buf_text(&sentence.words, "");
    return sentence;
}

static int compare_sentences(const char *a, const char *b, double factor)
{
    struct sentence x = read_sentence(a), y = read_sentence(b);
    int same = x.n == y.n && !strcmp(x.words.data, y.words.data);
    for (size_t i = 0; i < x.n && same; i++)
        same = agree(&x.number[i], &y.number[i], factor) ||
               is_near(&x.number[i], &y.number[i]);
    buf_free(&x.words);
    buf_free(&y.words);
    return same;
}

/* ---- one claim ---- */

static int are_decided(const json_t *was, const json_t *now)
{
    return json_is_true(json_object_get(was, "decided")) &&
           json_is_true(json_object_get(now, "decided"));
}

/* Two undecided sentences agree if they are equal; else they are not compared. */
static int compare_texts(const struct both *both, const json_t *was, const json_t *now)
{
    const char *x = rec_text(was, "text"), *y = rec_text(now, "text");
    if (!x || !y || !same_text(was, now, "clock"))
        return -1;
    int same = compare_sentences(x, y, both->within);
    return same || are_decided(was, now) ? same : -1;
}

/* Compares two crossings. They are compared only if both runs decided them. Decided crossings
 * without a place agree with each other. */
static int compare_places(const struct both *both, const json_t *was, const json_t *now)
{
    const struct number before = number_of(was), after = number_of(now);
    const int by_time = !rec_is(was, "key", "X_q");
    if (!is_sound(&before) || !is_sound(&after))
        return 0;
    if (!are_decided(was, now) || (by_time && !both->same_machine))
        return -1;
    if (isnan(before.v) || isnan(after.v))
        return isnan(before.v) && isnan(after.v);
    if (rec_is(was, "key", "X_lat"))
        return agree(&before, &after, both->within);
    if (both->same_answers)
        return !(before.v < after.v) && !(before.v > after.v);
    const double x_lo = isnan(before.lo) ? 0 : before.lo, y_lo = isnan(after.lo) ? 0 : after.lo;
    return x_lo < after.hi && y_lo < before.hi;
}

static int compare_qualities(const struct both *both, const json_t *was, const json_t *now)
{
    const struct number x = number_of(was), y = number_of(now);
    if (!is_sound(&x) || !is_sound(&y))
        return 0;
    if (isnan(x.v) || isnan(y.v))
        return -1;
    if (both->same_answers && rec_int(was, "prompts", 0) == rec_int(now, "prompts", 0))
        return fabs(x.v - y.v) <= (rec_is(was, "quality_metric", "judge_ppl") ? SAME_JUDGEMENT
                                                                              : SAME_SCORE) *
                                      (1 + fabs(x.v));
    return overlaps(&x, &y);
}

static int compare_ratios(const struct both *both, const json_t *was, const json_t *now)
{
    const struct number x = number_of(was), y = number_of(now);
    if (!is_sound(&x) || !is_sound(&y))
        return 0;
    if (isnan(x.v) || isnan(y.v) || !same_text(was, now, "clock"))
        return -1;
    if (rec_text(was, "clock"))
        return agree(&x, &y, both->within);
    return both->same_machine ? is_within(&x, &y, MEMORY) : -1;
}

static int compare_marks(const json_t *was, const json_t *now)
{
    return same_text(was, now, "hardware") ? same_text(was, now, "sha256") &&
                                                 json_equal(json_object_get(was, "prompts"),
                                                            json_object_get(now, "prompts"))
                                           : -1;
}

static int is_compared(const json_t *claim)
{
    const char *name = rec_text(claim, "name"), *key = rec_text(claim, "key");
    return name && strcmp(name, "question") && strcmp(name, "sure") &&
           !(key && !strcmp(key, "method"));
}

static int is_time(const json_t *claim)
{
    return rec_text(claim, "clock") && !isnan(rec_number(claim, "value"));
}

static int compare(const struct both *both, const json_t *was, const json_t *now)
{
    const char *name = rec_text(was, "name");
    if (!now)
        return -1;
    if (!strcmp(name, "crossing"))
        return compare_places(both, was, now);
    if (!strcmp(name, "quality"))
        return compare_qualities(both, was, now);
    if (!strcmp(name, "ratio") || !strcmp(name, "card"))
        return compare_ratios(both, was, now);
    return !strcmp(name, "answers") ? compare_marks(was, now) : compare_texts(both, was, now);
}

/* ---- records ---- */

/* Appends "1.40 [1.31, 1.50]", the text, or the reason of a null. */
static void put_content(struct buf *buffer, const json_t *claim)
{
    const struct number number = number_of(claim);
    const char *text = rec_text(claim, "text"), *why = rec_text(claim, "value_reason");
    const char *mark = rec_text(claim, "sha256");
    if (!claim)
        buf_text(buffer, "not in this run");
    else if (text || mark)
        buf_format(buffer, "%.300s", text ? text : mark);
    else if (isnan(number.v))
        buf_format(buffer, "none (%s)", why ? why : "no value");
    else if (isnan(number.lo) || isnan(number.hi))
        buf_format(buffer, "%.4g", number.v);
    else
        buf_format(buffer, "%.4g [%.4g, %.4g]", number.v, number.lo, number.hi);
}

static json_t *check_of(const json_t *was, const json_t *now, int pass)
{
    const char *key = rec_text(was, "key"), *task = rec_text(was, "task");
    struct buf text = {0}, then = {0}, after = {0};
    put_content(&then, was);
    put_content(&after, now);
    buf_format(&text, "%s  %s%s%s%s%s: %s then, %s now",
               pass < 0 ? "not compared" : pass ? "agrees" : "DIFFERS", rec_text(was, "name"),
               key ? " " : "", key ? key : "", task ? ", " : "", task ? task : "", then.data,
               after.data);
    json_t *record = json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", "replicate", "metric",
                               rec_text(was, "name"), "stored", then.data, "value", after.data,
                               "text", text.data);
    json_object_set_new(record, "pass", pass < 0 ? json_null() : json_boolean(pass));
    if (key)
        json_object_set_new(record, "key", json_string(key));
    if (task)
        json_object_set_new(record, "task", json_string(task));
    buf_free(&text);
    buf_free(&then);
    buf_free(&after);
    return record;
}

static json_t *summary_of(const struct agreement *agreement)
{
    const int none = !agreement->differed && (!agreement->agreed || !agreement->times_compared);
    char *text = mem_format("%s: %lld claims agree, %lld %s, %lld not compared; %lld of %lld "
                            "times compared",
                            agreement->differed ? "DIFFERS" : none ? "not compared" : "agrees",
                            (long long)agreement->agreed, (long long)agreement->differed,
                            agreement->differed == 1 ? "differs" : "differ",
                            (long long)agreement->skipped, (long long)agreement->times_compared,
                            (long long)agreement->times);
    json_t *record = json_pack("{s:s, s:s, s:s}", "check", "replicate", "metric", "all", "text",
                               text);
    json_object_set_new(record, "pass",
                        agreement->differed ? json_false()
                        : none              ? json_null()
                                            : json_true());
    free(text);
    return record;
}

json_t *agreement_of(const json_t *was, const json_t *now, struct agreement *sum)
{
    struct both both = {.same_answers = are_answers_same(was, now)};
    json_t *list = json_array(), *claim;
    size_t i;
    *sum = (struct agreement){0};
    both.same_machine = same_text(statement_find(was, "question"), statement_find(now, "question"),
                                  "hardware");
    both.within = both.same_machine ? SAME_MACHINE : OTHER_MACHINE;
    json_array_foreach((json_t *)(uintptr_t)was, i, claim) {
        if (!is_compared(claim))
            continue;
        const json_t *like = find_like(now, claim);
        int pass = compare(&both, claim, like);
        sum->agreed += pass > 0;
        sum->differed += pass == 0;
        sum->skipped += pass < 0;
        sum->times += is_time(claim);
        sum->times_compared += is_time(claim) && pass >= 0;
        json_array_append_new(list, check_of(claim, like, pass));
    }
    json_array_append_new(list, summary_of(sum));
    return list;
}
