/* ifeval.c - rule "ifeval": a response is right if it follows every instruction of its item. The
 * checks are those of the public code (checks.h). The answer of an item is {"instruction_id_list":
 * [...], "kwargs": [...]}. In the way "loose", an instruction is followed if any of eight texts
 * follows it: the response with and without its first line, its last line, and its asterisks. */
#include "lib/analysis/ifeval/ifeval.h"

#include <stdlib.h>
#include <string.h>

#include "lib/analysis/ifeval/checks.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { INSTRUCTIONS_MOST = 64, VARIANTS = 8 };

static const struct {
    const char *id;
    int (*check)(const struct asked *asked);
} instructions[] = {
    {"keywords:existence", checks_existence},
    {"keywords:frequency", checks_frequency},
    {"keywords:forbidden_words", checks_forbidden},
    {"keywords:letter_frequency", checks_letter_frequency},
    {"length_constraints:number_paragraphs", checks_number_paragraphs},
    {"length_constraints:number_words", checks_number_words},
    {"length_constraints:nth_paragraph_first_word", checks_first_word},
    {"detectable_content:number_placeholders", checks_placeholders},
    {"detectable_content:postscript", checks_postscript},
    {"detectable_format:number_bullet_lists", checks_bullets},
    {"detectable_format:constrained_response", checks_constrained},
    {"detectable_format:number_highlighted_sections", checks_highlights},
    {"detectable_format:multiple_sections", checks_sections},
    {"detectable_format:json_format", checks_json},
    {"detectable_format:title", checks_title},
    {"combination:two_responses", checks_two_responses},
    {"combination:repeat_prompt", checks_repeat_prompt},
    {"startend:end_checker", checks_end},
    {"startend:quotation", checks_quotation},
    {"change_case:capital_word_frequency", checks_capitals},
    {"punctuation:no_comma", checks_no_comma},
};

/* ---- texts ---- */

static char *without_stars(const char *text)
{
    struct buf out = {0};
    buf_replaced(&out, text, "*", "");
    return out.data;
}

/* The text without its first line (first 1), its last line (last 1), or both, stripped. */
static char *without_lines(const char *text, int first, int last)
{
    const char *from = first ? strchr(text, '\n') : text, *to = text + strlen(text);
    const char *cut = strrchr(text, '\n');
    from = !from ? to : from + first;
    to = !last ? to : cut ? cut : text;
    struct piece left = python_strip((struct piece){from, to > from ? (size_t)(to - from) : 0});
    return mem_format("%.*s", (int)left.n, left.at);
}

static size_t make_texts(char **texts, const char *response, int loose)
{
    texts[0] = mem_text(response);
    if (!loose)
        return 1;
    for (int i = 1; i < 4; i++)
        texts[i] = without_lines(response, i & 1, i >> 1);
    for (int i = 0; i < 4; i++)
        texts[4 + i] = without_stars(texts[i]);
    return VARIANTS;
}

/* ---- the verdict ---- */

static int follows(struct asked *asked, char **texts, size_t n)
{
    size_t k = 0;
    int verdict = 0;
    while (k < sizeof instructions / sizeof *instructions && strcmp(instructions[k].id, asked->id))
        k++;
    if (k == sizeof instructions / sizeof *instructions)
        return err_set(asked->e, EXIT_BAD_DATA, "answer: instruction '%.60s' is not checked here",
                       asked->id);
    if (!json_is_object(asked->arguments))
        return checks_refuse(asked, "kwargs", "an object");
    for (size_t i = 0; i < n && verdict != 1 && verdict >= 0; i++) {
        asked->text = python_piece(texts[i]);
        int got = instructions[k].check(asked);
        if (got >= 0 && python_is_blank(asked->text))
            got = 0;
        verdict = got ? got : verdict;
    }
    return verdict;
}

/* The verdict on all instructions. If one is not followed, the response is wrong, even if another
 * instruction has no verdict. */
static int follows_all(const json_t *ids, const json_t *arguments, char **texts, size_t n,
                       const char **why, struct err *e)
{
    int verdict = 1;
    for (size_t i = 0; i < json_array_size(ids) && verdict >= 0; i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        struct asked asked = {id ? id : "", json_array_get(arguments, i), {"", 0}, why, e};
        int got = follows(&asked, texts, n);
        verdict = got < 0 ? -1 : !got || !verdict ? 0 : got == RULE_NONE ? RULE_NONE : verdict;
    }
    return verdict;
}

int ifeval_judge(int loose, const char *answer, const char *response, const char **why,
                 struct err *e)
{
    json_t *given = json_loads(answer, 0, NULL);
    const json_t *ids = json_object_get(given, "instruction_id_list");
    const json_t *arguments = json_object_get(given, "kwargs");
    size_t most = json_array_size(ids);
    char *texts[VARIANTS] = {0};
    int verdict;
    if (!most || most > INSTRUCTIONS_MOST || json_array_size(arguments) != most) {
        verdict = err_set(e, EXIT_BAD_DATA, "answer: expected {\"instruction_id_list\", "
                          "\"kwargs\"} for rule ifeval, 1 to %d of each", INSTRUCTIONS_MOST);
    } else {
        size_t n = make_texts(texts, response, loose);
        verdict = follows_all(ids, arguments, texts, n, why, e);
    }
    for (int i = 0; i < VARIANTS; i++)
        free(texts[i]);
    json_decref(given);
    return verdict;
}
