/* agreement.c - see agreement.h. Every comparison returns 1 agrees, 0 differs, -1 not compared. A
 * value outside its own interval was altered, whatever the other run says. So the numbers in a
 * sentence are read with the intervals after them and compared like ratios. */
#include "lib/analysis/claim/agreement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double SAME_MACHINE = 1.1, OTHER_MACHINE = 2, MEMORY = 1.02;
/* Qualities of equal answers. A judge may run on another instruction set than the generator, or
 * than in the other run; its perplexity of one text set then differed by 0.05 %. */
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
    const json_t *c;
    size_t i;
    json_array_foreach(list, i, c)
        if (same_text(c, like, "name") && same_text(c, like, "key") &&
            same_text(c, like, "task") && same_text(c, like, "quality_metric"))
            return c;
    return NULL;
}

static const json_t *find_named(const json_t *list, const char *name)
{
    const json_t *c;
    size_t i;
    json_array_foreach(list, i, c)
        if (rec_is(c, "name", name))
            return c;
    return NULL;
}

/* 1: both have hashes of answers, and all common ones are equal. */
static int are_answers_same(const json_t *was, const json_t *now)
{
    const json_t *c;
    size_t i;
    int n = 0;
    json_array_foreach(was, i, c) {
        const json_t *like = rec_is(c, "name", "answers") ? find_like(now, c) : NULL;
        if (like && !same_text(c, like, "sha256"))
            return 0;
        n += like != NULL;
    }
    return n > 0;
}

/* ---- numbers ---- */

struct number { double v, lo, hi; }; /* lo, hi NaN: no interval */

static struct number number_of(const json_t *c)
{
    return (struct number){rec_number(c, "value"), rec_number(c, "lo"), rec_number(c, "hi")};
}

/* 0: the value is outside its own interval, so it was altered. */
static int is_sound(const struct number *x)
{
    const double slack = 1e-9 + 0.01 * fabs(x->v); /* for rounding in sentences */
    return !(x->v < x->lo - slack) && !(x->v > x->hi + slack);
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
/* A sentence with # in place of each number except step counts, and these numbers. */
struct sentence { struct buf words; struct number number[NUMBERS]; size_t n; };

static int is_step_count(const char *behind)
{
    return !strncmp(behind, " step", 5);
}

static void put_number(struct sentence *s, double v)
{
    if (s->n < NUMBERS)
        s->number[s->n++] = (struct number){v, NAN, NAN};
    buf_char(&s->words, '#');
}

/* Reads "[1.31, 1.50]", the interval of the number before it. Differences in points become shares,
 * which is_near() expects. Returns the text after the interval, or NULL. */
static const char *take_interval(struct sentence *s, const char *at)
{
    char *end;
    double lo = strtod(at + 1, &end);
    if (end == at + 1 || *end != ',' || !s->n)
        return NULL;
    const char *second = end + 1;
    double hi = strtod(second, &end);
    if (end == second || *end != ']')
        return NULL;
    const double scale = strncmp(end, "] points", strlen("] points")) ? 1 : 0.01;
    struct number *last = &s->number[s->n - 1];
    *last = (struct number){scale * last->v, scale * lo, scale * hi};
    buf_text(&s->words, "[]");
    return end + 1;
}

static struct sentence read_sentence(const char *text)
{
    struct sentence s = {.n = 0};
    for (const char *at = text; *at;) {
        const char *behind = *at == '[' ? take_interval(&s, at) : NULL;
        char *end = NULL;
        const int sign = *at == '-' && at > text && at[-1] == ' ';
        double v = at[sign] >= '0' && at[sign] <= '9' ? strtod(at, &end) : 0;
        if (behind)
            at = behind;
        else if (end && end > at && !is_step_count(end)) {
            put_number(&s, v);
            at = end;
        } else if (end && end > at) {
            buf_put(&s.words, at, (size_t)(end - at));
            at = end;
        } else
            buf_char(&s.words, *at++);
    }
    buf_text(&s.words, "");
    return s;
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
static int compare_texts(const struct both *b, const json_t *was, const json_t *now)
{
    const char *x = rec_text(was, "text"), *y = rec_text(now, "text");
    if (!x || !y || !same_text(was, now, "clock"))
        return -1;
    int same = compare_sentences(x, y, b->within);
    return same || are_decided(was, now) ? same : -1;
}

/* A crossing may have no place; it is compared only if both runs decided it. */
static int compare_places(const struct both *b, const json_t *was, const json_t *now)
{
    const struct number x = number_of(was), y = number_of(now);
    const int by_time = !rec_is(was, "key", "X_q");
    if (!is_sound(&x) || !is_sound(&y))
        return 0;
    if (!are_decided(was, now) || (by_time && !b->same_machine))
        return -1;
    if (isnan(x.v) || isnan(y.v))
        return isnan(x.v) && isnan(y.v);
    if (rec_is(was, "key", "X_lat"))
        return agree(&x, &y, b->within);
    if (b->same_answers)
        return !(x.v < y.v) && !(x.v > y.v);
    const double x_lo = isnan(x.lo) ? 0 : x.lo, y_lo = isnan(y.lo) ? 0 : y.lo;
    return x_lo < y.hi && y_lo < x.hi;
}

static int compare_qualities(const struct both *b, const json_t *was, const json_t *now)
{
    const struct number x = number_of(was), y = number_of(now);
    if (!is_sound(&x) || !is_sound(&y))
        return 0;
    if (isnan(x.v) || isnan(y.v))
        return -1;
    if (b->same_answers && rec_int(was, "prompts", 0) == rec_int(now, "prompts", 0))
        return fabs(x.v - y.v) <= (rec_is(was, "quality_metric", "judge_ppl") ? SAME_JUDGEMENT
                                                                              : SAME_SCORE) *
                                      (1 + fabs(x.v));
    return overlaps(&x, &y);
}

static int compare_ratios(const struct both *b, const json_t *was, const json_t *now)
{
    const struct number x = number_of(was), y = number_of(now);
    if (!is_sound(&x) || !is_sound(&y))
        return 0;
    if (isnan(x.v) || isnan(y.v) || !same_text(was, now, "clock"))
        return -1;
    if (rec_text(was, "clock"))
        return agree(&x, &y, b->within);
    return b->same_machine ? is_within(&x, &y, MEMORY) : -1;
}

static int compare_marks(const json_t *was, const json_t *now)
{
    return same_text(was, now, "hardware") ? same_text(was, now, "sha256") &&
                                                 json_equal(json_object_get(was, "prompts"),
                                                            json_object_get(now, "prompts"))
                                           : -1;
}

static int is_compared(const json_t *c)
{
    const char *name = rec_text(c, "name"), *key = rec_text(c, "key");
    return name && strcmp(name, "question") && strcmp(name, "sure") &&
           !(key && !strcmp(key, "method"));
}

static int is_time(const json_t *c)
{
    return rec_text(c, "clock") && !isnan(rec_number(c, "value"));
}

static int compare(const struct both *b, const json_t *was, const json_t *now)
{
    const char *name = rec_text(was, "name");
    if (!now)
        return -1;
    if (!strcmp(name, "crossing"))
        return compare_places(b, was, now);
    if (!strcmp(name, "quality"))
        return compare_qualities(b, was, now);
    if (!strcmp(name, "ratio") || !strcmp(name, "card"))
        return compare_ratios(b, was, now);
    return !strcmp(name, "answers") ? compare_marks(was, now) : compare_texts(b, was, now);
}

/* ---- records ---- */

/* Appends "1.40 [1.31, 1.50]", the text, or the reason of a null. */
static void put_content(struct buf *b, const json_t *c)
{
    const struct number x = number_of(c);
    const char *text = rec_text(c, "text"), *why = rec_text(c, "value_reason");
    const char *mark = rec_text(c, "sha256");
    if (!c)
        buf_text(b, "not in this run");
    else if (text || mark)
        buf_format(b, "%.300s", text ? text : mark);
    else if (isnan(x.v))
        buf_format(b, "none (%s)", why ? why : "no value");
    else if (isnan(x.lo) || isnan(x.hi))
        buf_format(b, "%.4g", x.v);
    else
        buf_format(b, "%.4g [%.4g, %.4g]", x.v, x.lo, x.hi);
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
    json_t *r = json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", "replicate", "metric",
                          rec_text(was, "name"), "stored", then.data, "value", after.data, "text",
                          text.data);
    json_object_set_new(r, "pass", pass < 0 ? json_null() : json_boolean(pass));
    if (key)
        json_object_set_new(r, "key", json_string(key));
    if (task)
        json_object_set_new(r, "task", json_string(task));
    buf_free(&text);
    buf_free(&then);
    buf_free(&after);
    return r;
}

static json_t *summary_of(const struct agreement *a)
{
    const int none = !a->differed && (!a->agreed || !a->times_compared);
    char *text = mem_format("%s: %lld claims agree, %lld %s, %lld not compared; %lld of %lld "
                            "times compared",
                            a->differed ? "DIFFERS" : none ? "not compared" : "agrees",
                            (long long)a->agreed, (long long)a->differed,
                            a->differed == 1 ? "differs" : "differ", (long long)a->skipped,
                            (long long)a->times_compared, (long long)a->times);
    json_t *r = json_pack("{s:s, s:s, s:s}", "check", "replicate", "metric", "all", "text", text);
    json_object_set_new(r, "pass", a->differed ? json_false() : none ? json_null() : json_true());
    free(text);
    return r;
}

json_t *agreement_of(const json_t *was, const json_t *now, struct agreement *sum)
{
    struct both b = {.same_answers = are_answers_same(was, now)};
    json_t *list = json_array(), *c;
    size_t i;
    *sum = (struct agreement){0};
    b.same_machine = same_text(find_named(was, "question"), find_named(now, "question"),
                               "hardware");
    b.within = b.same_machine ? SAME_MACHINE : OTHER_MACHINE;
    json_array_foreach((json_t *)(uintptr_t)was, i, c) {
        if (!is_compared(c))
            continue;
        const json_t *like = find_like(now, c);
        int pass = compare(&b, c, like);
        sum->agreed += pass > 0;
        sum->differed += pass == 0;
        sum->skipped += pass < 0;
        sum->times += is_time(c);
        sum->times_compared += is_time(c) && pass >= 0;
        json_array_append_new(list, check_of(c, like, pass));
    }
    json_array_append_new(list, summary_of(sum));
    return list;
}
