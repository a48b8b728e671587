/* figure-trace.c - one answer from pass to pass: the slots that each pass commits, and the
 * confidence of the model. Each panel is a configuration that answered the same prompt; all panels
 * have the same axes.
 *
 * A slot is final over spans of passes: from its commit to the pass that masks it again, or to the
 * last pass. Only final slots are drawn; masked slots show the background. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

enum { PANELS = 4, MOST = 1 << 16 /* slots, passes */, TIPS = 1024 };

struct trace_panel {
    const char *point, *config; /* borrowed */
    int64_t slots, block, passes, tokens;
    int64_t *since;             /* [slots] the pass that committed the slot; 0: masked */
    double *confidence;         /* [slots] of that commit; NaN: unknown */
    double *all;                /* the confidences of all commits */
    size_t n, cap;
    struct reopened { double slot, pass; } *again;
    size_t n_again, cap_again;
    int place, tips; /* number of the panel, from 1; texts for a pointer so far */
};

/* ---- records ---- */

static int is_drawable(const json_t *r)
{
    int64_t slots = rec_int(r, "slot_count", 0), pass = rec_int(r, "pass", 0);
    return about_point(r) && slots > 0 && slots <= MOST && pass > 0 && pass <= MOST;
}

/* Finds the answer (*id, or the first) and its panels, in the order of the records. Returns how
 * many panels. */
static int find_panels(const json_t *records, const char **id, struct trace_panel *list)
{
    size_t i;
    const json_t *r;
    int n = 0;
    json_array_foreach(records, i, r) {
        const char *prompt = rec_text(r, "id"), *config = rec_text(r, "config");
        int at = 0;
        if (!prompt || !is_drawable(r) || (*id && strcmp(prompt, *id)))
            continue;
        *id = prompt;
        while (at < n && strcmp(list[at].point, about_point(r)))
            at++;
        if (at < n || n == PANELS)
            continue;
        list[n] = (struct trace_panel){.point = about_point(r), .config = config ? config : "",
                                   .slots = rec_int(r, "slot_count", 0),
                                   .block = rec_int(r, "block_length", 0), .place = n + 1};
        n++;
    }
    return n;
}

/* ---- one answer ---- */

static void put_tip(struct figure *f, const struct trace_panel *p, int64_t slot, double c)
{
    const double x = (double)slot, y = (double)p->since[slot], corner[2] = {x + 0.5, y + 0.5};
    char *sure = isnan(c) ? mem_text("") : mem_format(", confidence %.2f", c);
    figure_tip(f, p->place, x - 0.5, y - 0.5, corner, "slot %.0f: final in pass %.0f%s", x, y,
               sure);
    free(sure);
}

/* Ends the span of a slot at pass `last`. */
static void put_span(struct figure *f, struct trace_panel *p, int64_t slot, int64_t last)
{
    if (!p->since[slot])
        return;
    double c = p->confidence[slot];
    char digit[2] = {isnan(c) ? '?' : (char)('0' + (int)fmin(9, 10 * fmax(c, 0))), 0};
    script_row(&f->script, "nnnnt", (double)slot, (double)p->since[slot], (double)last, c, digit);
    if (p->tips++ < TIPS)
        put_tip(f, p, slot, c);
    p->since[slot] = 0;
}

static int64_t slot_at(const json_t *list, size_t i, const struct trace_panel *p)
{
    const json_t *v = json_array_get(list, i);
    json_int_t slot = json_is_integer(v) ? json_integer_value(v) : -1;
    return slot < p->slots ? (int64_t)slot : -1;
}

static void take_commits(struct figure *f, struct trace_panel *p, const json_t *r, int64_t pass)
{
    const json_t *slots = json_object_get(r, "slots"), *sure = json_object_get(r, "confidences");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        int64_t slot = slot_at(slots, i, p);
        const json_t *c = json_array_get(sure, i);
        if (slot < 0) {
            f->script.skipped++;
            continue;
        }
        put_span(f, p, slot, pass - 1); /* the id changed without a mask between */
        p->since[slot] = pass;
        p->tokens++;
        p->confidence[slot] = json_is_number(c) ? json_number_value(c) : (double)NAN;
        if (!json_is_number(c))
            continue;
        MEM_GROW(p->all, p->n, p->cap);
        p->all[p->n++] = json_number_value(c);
    }
}

static void take_masked(struct figure *f, struct trace_panel *p, const json_t *r, int64_t pass)
{
    const json_t *slots = json_object_get(r, "masked_slots");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        int64_t slot = slot_at(slots, i, p);
        if (slot < 0) {
            f->script.skipped++;
            continue;
        }
        put_span(f, p, slot, pass - 1);
        MEM_GROW(p->again, p->n_again, p->cap_again);
        p->again[p->n_again++] = (struct reopened){(double)slot, (double)pass};
    }
}

/* Writes the rows of a panel. A pass number that does not rise belongs to another run. */
static void put_panel(struct figure *f, struct trace_panel *p, const json_t *records,
                      const char *id)
{
    size_t i;
    const json_t *r;
    p->since = mem_zero((size_t)p->slots, sizeof *p->since);
    p->confidence = mem_zero((size_t)p->slots, sizeof *p->confidence);
    json_array_foreach(records, i, r) {
        int64_t pass = rec_int(r, "pass", 0);
        const char *prompt = rec_text(r, "id");
        if (!prompt || strcmp(prompt, id) || !is_drawable(r) || strcmp(p->point, about_point(r)))
            continue;
        if (pass <= p->passes) {
            f->script.skipped++;
            continue;
        }
        p->passes = pass;
        take_masked(f, p, r, pass);
        take_commits(f, p, r, pass);
    }
    for (int64_t slot = 0; slot < p->slots; slot++)
        put_span(f, p, slot, p->passes);
    script_next(&f->script, 5);
}

static void put_again(struct script *s, const struct trace_panel *list, int n)
{
    script_table(s, "again", "slot pass");
    for (int k = 0; k < n; k++) {
        for (size_t i = 0; i < list[k].n_again; i++)
            script_row(s, "nn", list[k].again[i].slot, list[k].again[i].pass);
        script_next(s, 2);
    }
    script_table_end(s);
}

/* ---- words ---- */

static int has_word(const char *text, const char *word, size_t n)
{
    for (const char *s = text; *s; s += strcspn(s, " "), s += strspn(s, " "))
        if (strcspn(s, " ") == n && !strncmp(s, word, n))
            return 1;
    return 0;
}

/* The words of a panel's label that all panels have (wanted 1) or do not have (wanted 0). If
 * there are none, the whole label. The caller frees. */
static char *words_of(const struct trace_panel *list, int n, int k, int wanted)
{
    struct buf b = {0};
    for (const char *s = list[k].config; *s; s += strcspn(s, " "), s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");
        int shared = 1;
        for (int j = 0; j < n; j++)
            shared &= has_word(list[j].config, s, len);
        if (shared == wanted && len) {
            buf_text(&b, b.len ? " " : "");
            buf_put(&b, s, len);
        }
    }
    return b.data ? b.data : mem_text(list[k].config);
}

static void say_shared(struct figure *f, const struct trace_panel *list, int n)
{
    if (n < 2)
        return;
    char *words = words_of(list, n, 0, 1), *clean = display_cleaned(words, 200);
    figure_say(f, "All panels: %s.", clean);
    free(clean);
    free(words);
}

static void say_panel(struct figure *f, struct trace_panel *p, const char *name)
{
    char *sure = p->n ? mem_format(", median confidence %.2f", stat_median(p->all, p->n))
                      : mem_text("");
    char *again = p->n_again ? mem_format(", %zu masked again", p->n_again) : mem_text("");
    figure_say(f, "%s: %lld token%s in %lld pass%s%s%s.", name, (long long)p->tokens,
               figure_plural((double)p->tokens), (long long)p->passes, p->passes == 1 ? "" : "es",
               sure, again);
    free(sure);
    free(again);
}

void figure_trace(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct trace_panel list[PANELS];
    const json_t *records = runset_kind(s, "commit");
    const char *id = q->id;
    char *title[PANELS];
    double passes[PANELS], again[PANELS], most_slots = 1, most_passes = 1, reopened = 0;
    int n = find_panels(records, &id, list);
    f->why = n ? NULL : q->id ? "no commit record has the id of --id" : NULL;
    char *of = display_cleaned(id ? id : "", 60);
    if (n)
        figure_say(f, "Tokens that each pass commits in the answer to prompt %s. Columns are "
                      "slots; passes run downwards. Light: masked. Grey: final. Coloured: the pass "
                      "that commits the token, by the probability of the token in the model%s.", of,
                   list[0].block > 0 ? "; lines: blocks" : "");
    script_table(&f->script, "spans", "slot pass last confidence digit");
    for (int k = 0; k < n; k++)
        put_panel(f, &list[k], records, id);
    script_table_end(&f->script);
    put_again(&f->script, list, n);
    for (int k = 0; k < n; k++) {
        char *own = words_of(list, n, k, n == 1), *name = display_cleaned(own, 200);
        passes[k] = (double)list[k].passes;
        most_slots = fmax(most_slots, (double)list[k].slots);
        most_passes = fmax(most_passes, passes[k]);
        again[k] = (double)list[k].n_again;
        reopened += again[k];
        title[k] = display_cleaned(own, 40);
        say_panel(f, &list[k], name);
        free(name);
        free(own);
    }
    say_shared(f, list, n);
    free(of);
    if (reopened > 0)
        figure_say(f, "Crosses: masked again.");
    script_texts(&f->script, "panel_title", (const char *const *)title, n);
    script_numbers(&f->script, "panel_passes", passes, n);
    script_numbers(&f->script, "panel_again", again, n);
    script_number(&f->script, "panel_count", n);
    script_number(&f->script, "slot_count", most_slots);
    script_number(&f->script, "pass_count", most_passes);
    script_number(&f->script, "block_length", n ? (double)list[0].block : 0);
    for (int k = 0; k < n; k++) {
        free(title[k]);
        free(list[k].since);
        free(list[k].confidence);
        free(list[k].all);
        free(list[k].again);
    }
}
