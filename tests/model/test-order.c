/* test-order.c - tests the orders of answers, on answers made by hand, and the names by which users
 * choose orders. */
#include "kernels/advance.h"
#include "lib/base/rng.h"
#include "lib/decode/decoder.h"
#include "tests/tap.h"

enum { N = 4 };

static double score(enum order o, const struct head_row *a, uint64_t key)
{
    const struct candidate c = {a, exp(a->log_prob), 5, key};
    return order_score(o, &c);
}

/* Returns the indices of the answers, best first by an order, the lowest of equals first:
 * "2013". */
static const char *ranks(enum order o, const struct head_row answer[N], char text[N + 1])
{
    for (size_t i = 0; i < N; i++) {
        size_t before = 0;
        for (size_t j = 0; j < N; j++) {
            double a = score(o, &answer[i], i), b = score(o, &answer[j], j);
            before += b > a || (j < i && !(b < a));
        }
        text[before] = (char)('0' + i);
    }
    text[N] = 0;
    return text;
}

static void is_ranked(enum order o, const struct head_row answer[N], const char *expected,
                      const char *why)
{
    char text[N + 1];
    ok(!strcmp(ranks(o, answer, text), expected), "%s: %s, got %s", why, expected, text);
}

static void test_confidence(void)
{
    const struct head_row answer[N] = {{.log_prob = -2, .entropy = 0.1f}, {.log_prob = -HUGE_VAL},
                                       {.log_prob = -0.5}, {.log_prob = -2, .entropy = 0}};
    is_ranked(ORDER_CONFIDENCE, answer, "2031", "confidence: probable ones first, ties by place");
}

static void test_margin(void)
{
    const struct head_row answer[N] = {{.best_log_prob = log(0.6), .runner_up_prob = 0.4f},
                                       {.best_log_prob = log(0.4), .runner_up_prob = 0.0625f},
                                       {.log_prob = -HUGE_VAL},
                                       {.prob = 0.1f, .best_log_prob = log(0.9),
                                        .runner_up_prob = 0.4f}};
    is_ranked(ORDER_MARGIN, answer, "3102",
              "margin: far ahead first whatever is drawn, suppressed ones last");
}

static void test_entropy(void)
{
    const struct head_row answer[N] = {{.log_prob = -0.1, .entropy = 0.5f},
                                       {.log_prob = -0.9, .entropy = 0.25f},
                                       {.log_prob = -HUGE_VAL, .entropy = 0},
                                       {.log_prob = -2, .entropy = 0.25f}};
    is_ranked(ORDER_ENTROPY, answer, "1302", "entropy: the least first, suppressed ones last");
}

static void test_left_to_right(void)
{
    const struct head_row answer[N] = {{.log_prob = -9}, {.log_prob = -HUGE_VAL},
                                       {.log_prob = -0.1}, {.log_prob = -2}};
    is_ranked(ORDER_LEFT_TO_RIGHT, answer, "0231", "left to right: by place, suppressed ones last");
}

static void test_random(void)
{
    const struct head_row sure = {.log_prob = -0.1}, unsure = {.log_prob = -9};
    int drawn = 1;
    for (uint64_t key = 0; key < 50; key++) {
        double a = score(ORDER_RANDOM, &sure, key), b = score(ORDER_RANDOM, &unsure, key);
        drawn &= a >= b && a <= b && a >= rng_unit(rng_at(5, key, 0)) && a < 1 &&
                 a <= rng_unit(rng_at(5, key, 0));
    }
    ok(drawn, "random: a draw of the slot and the pass, whatever the answer");
}

/* --order offers every order except the random one; word i names enumerator i. */
static void test_words(void)
{
    const char *const word[ORDER_RANDOM] = {
        [ORDER_CONFIDENCE] = "confidence",
        [ORDER_MARGIN] = "margin",
        [ORDER_ENTROPY] = "entropy",
        [ORDER_LEFT_TO_RIGHT] = "left_to_right",
    };
    struct settings s = {.table = decoder_diffuse.table};
    size_t row = settings_find(s.table, "order"), bars = 0;
    for (const char *c = s.table->row[row].choices; *c; c++)
        bars += *c == '|';
    ok(bars + 1 == ORDER_RANDOM, "--order: %s", s.table->row[row].choices);
    for (size_t k = 0; k < ORDER_RANDOM; k++) {
        char got[SETTINGS_WORD];
        s.v[row] = (double)k;
        settings_word(&s, row, got);
        ok(word[k] && !strcmp(got, word[k]), "order %zu is called %s", k, got);
    }
}

int main(void)
{
    test_confidence();
    test_margin();
    test_entropy();
    test_left_to_right();
    test_random();
    test_words();
    return tap_done();
}
