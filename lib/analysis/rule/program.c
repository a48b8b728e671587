/* program.c - judges a response by running it. The answer of a task is a program with a hole for
 * the response. The response is right if the program runs to its end: then the interpreter prints a
 * proof, the hash of the program. A program that exits early prints no proof. A response that wants
 * to cheat can compute the hash; nothing prevents this. */
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/base/hash.h"
#include "lib/base/sandbox.h"
#include "lib/record/rec.h"

static const char hole[] = "<<response>>", proof_hole[] = "<<proof>>";

static struct sandbox_limits limits_of(const json_t *rule)
{
    return (struct sandbox_limits){(int)rec_int(rule, "cpu_seconds", 3),
                                   (int)rec_int(rule, "wall_seconds", 30),
                                   (int)rec_int(rule, "memory_mib", 1024), 64};
}

int rule_program_open(struct rule *r, const json_t *rule, struct err *e)
{
    static const char *const nothing[] = {"true", NULL};
    const struct sandbox_limits limits = limits_of(rule);
    size_t n = json_array_size(json_object_get(rule, "run"));
    size_t words = 0;
    while (words < n && json_string_length(json_array_get(json_object_get(rule, "run"), words)))
        words++;
    if (n < 1 || n >= RULE_ARGUMENTS || words < n)
        return err_set(e, EXIT_BAD_DATA, "task %s: rule.run: expected 1 to %d words",
                       rec_text(r->row, "name"), RULE_ARGUMENTS - 1);
    if (sandbox_run(nothing, "", 0, &limits, &r->one, &r->why) && !r->why)
        r->why = "no sandbox: a program that does nothing fails in it";
    return 0;
}

/* Sets out to the text with `by` in place of the hole. Returns 1; 0: the text has no hole. */
static int fill(const char *text, const char *at_hole, const char *by, struct buf *out)
{
    buf_clear(out);
    buf_replaced(out, text, at_hole, by);
    return strstr(text, at_hole) != NULL;
}

int rule_program(struct rule *judge, const char *answer, const char *response, const char **why,
                 struct err *e)
{
    const json_t *rule = json_object_get(judge->row, "rule"), *run = json_object_get(rule, "run");
    const struct sandbox_limits limits = limits_of(rule);
    const char *argv[RULE_ARGUMENTS] = {0};
    struct buf word[RULE_ARGUMENTS] = {{0}};
    char proof[65];
    size_t n = json_array_size(run);
    if (!fill(answer, hole, response, &judge->one))
        return err_set(e, EXIT_BAD_DATA, "answer: expected a program with %s", hole);
    hash_bytes(judge->one.data, judge->one.len, proof);
    for (size_t i = 0; i < n; i++) {
        fill(json_string_value(json_array_get(run, i)), proof_hole, proof, &word[i]);
        argv[i] = word[i].data;
    }
    int status = judge->why ? -1
                            : sandbox_run(argv, judge->one.data, judge->one.len, &limits,
                                          &judge->two, why);
    if (judge->why)
        *why = judge->why;
    for (size_t i = 0; i < n; i++)
        buf_free(&word[i]);
    return status < 0 ? RULE_NONE
                      : status == 0 && judge->two.len &&
                            memmem(judge->two.data, judge->two.len, proof, strlen(proof)) != NULL;
}
