/* baseline.h - finds the base that a point is compared with. BY names the setting whose effect is
 * measured ("quant"). A base has the usual value of BY; all its other settings are equal to those
 * of the point. If BY is "paradigm", "method", "option" or "stack", other settings differ too, and
 * rules for each of these choose the base. */
#pragma once

#include "lib/analysis/points/points.h"
#include "lib/setting/methods.h"
#include "lib/setting/settings.h"

struct baseline_side { /* what BY says about a point */
    const struct method *method; /* NULL: none, or BY is not "method" */
    char *setting;               /* value of BY as text; "": none; owned */
    int is_base;                 /* 1: BY has its usual value */
    char rest[2][SETTINGS_ID];   /* identity of all settings but BY; [1]: and without the settings
                                    that follow from BY */
};

struct baseline {
    const struct points *points;   /* after points_finish(); borrowed */
    const struct methods *methods; /* n > 0: BY is "method"; borrowed */
    const char *by;                /* borrowed */
    char *usual;                   /* usual value of BY; NULL: a base lacks this setting; owned */
    struct baseline_side *side;    /* [points->n]; owned */
};
/* base: the usual value of BY; NULL: its default. Released by baseline_free. */
void baseline_open(struct baseline *baseline, const struct points *points,
                   const struct methods *methods, const char *by, const char *base);
void baseline_free(struct baseline *baseline);

const struct baseline_side *baseline_side(const struct baseline *baseline,
                                          const struct point *point);
/* The base of a point; NULL: it has none. */
const struct point *baseline_find(const struct baseline *baseline, const struct point *of);
/* Tells if prompts are the reason why a point has no base. Returns the base that it would have if
 * other prompts (about_other_prompts()) did not matter. NULL: prompts are not the reason. */
const struct point *baseline_elsewhere(const struct baseline *baseline, const struct point *of);
/* The names of the settings that differ because BY differs (number formats, weights): an array, the
 * caller's reference. */
json_t *baseline_also(const struct baseline *baseline, const struct point *base,
                      const struct point *point);
