/* jinja_run.h - a template at work: variables, arguments, and the names that are known. */
#pragma once

#include "lib/text/jinja/jinja_node.h"
#include "lib/text/jinja/jinja_value.h"

struct jinja_variable {
    const struct jinja_string *name;
    struct jinja_value value;
    struct jinja_variable *next;
};
struct jinja_scope {
    struct jinja_scope *around;
    struct jinja_variable *first;
};
struct jinja_macro {
    const struct jinja_node *definition;
    struct jinja_scope *around; /* where it is defined: what its body sees */
};
enum { JINJA_ARGUMENTS_MAX = 16, JINJA_BOUND_MAX = 4 };
struct jinja_arguments {
    size_t n;
    struct {
        const struct jinja_string *name; /* NULL: by position */
        struct jinja_value value;
    } v[JINJA_ARGUMENTS_MAX];
};
struct jinja_run {
    struct jinja_work *w;
    struct jinja_scope *scope;
    int calls; /* macros that run now */
    struct jinja_value (*call)(struct jinja_run *run, const struct jinja_macro *macro,
                               const struct jinja_arguments *arguments);
};

void jinja_assign(struct jinja_run *run, const struct jinja_string *name, struct jinja_value value);
/* A filter, method or function that is asked for. */
struct jinja_asked {
    struct jinja_value x; /* what a filter or method is applied to */
    struct jinja_value a[JINJA_BOUND_MAX]; /* its arguments by the names in its row of a table */
    const struct jinja_arguments *all;
    int how; /* from the row: which of several that are alike */
};
/* The argument for the parameter of this name at this place; NULL: none. */
const struct jinja_value *jinja_argument(const struct jinja_arguments *arguments, size_t place,
                                         const struct jinja_string *name);
/* to[i] = the argument of the i-th of the words in `names`, ABSENT where there is none. Fails with
 * `who` for others and for missing ones before a "?" word, as in "old new ?count". */
void jinja_bind(struct jinja_run *run, const struct jinja_string *who,
                const struct jinja_arguments *arguments, const char *names,
                struct jinja_value to[JINJA_BOUND_MAX]);
/* The number in an argument; standard: where there is none. */
int64_t jinja_integer(struct jinja_run *run, struct jinja_value value, int64_t standard);

/* Runs the statements of a template; what they write is in *out. */
void jinja_run(struct jinja_work *work, const struct jinja_node *all, const json_t *variables,
               struct jinja_text *out);
struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node);
/* value.name, value[key]; undefined: there is none. */
struct jinja_value jinja_attribute(struct jinja_run *run, struct jinja_value value,
                                   const struct jinja_string *name);
struct jinja_value jinja_item(struct jinja_run *run, struct jinja_value value,
                              struct jinja_value key);
/* value[a:b:c], with a, b, c in given[]; ABSENT: left out. */
struct jinja_value jinja_slice(struct jinja_run *run, struct jinja_value value,
                               const struct jinja_value given[3]);

/* A filter, test, method or function by its name; refused if it is not known. */
struct jinja_value jinja_apply_filter(struct jinja_run *run, const struct jinja_string *name,
                                      struct jinja_value subject,
                                      const struct jinja_arguments *arguments);
int jinja_apply_test(struct jinja_run *run, const struct jinja_string *name,
                     struct jinja_value subject, const struct jinja_arguments *arguments);
struct jinja_value jinja_call_method(struct jinja_run *run, const struct jinja_string *name,
                                     struct jinja_value subject,
                                     const struct jinja_arguments *arguments);
struct jinja_value jinja_call_function(struct jinja_run *run, const struct jinja_string *name,
                                       const struct jinja_arguments *arguments);
int jinja_is_method(struct jinja_value subject, const struct jinja_string *name); /* 1: it has it */
int jinja_is_function(const struct jinja_string *name);

/* Texts, for filters and methods alike. */
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_CAPITAL };
struct jinja_value jinja_change_case(struct jinja_run *run, const struct jinja_string *bytes,
                                     enum jinja_case to);
/* sides: 1 left, 2 right; letters NULL: white space. */
struct jinja_value jinja_strip(struct jinja_run *run, const struct jinja_string *text, int sides,
                               const struct jinja_string *letters);
struct jinja_value jinja_replace(struct jinja_run *run, const struct jinja_string *bytes,
                                 const struct jinja_string *old, const struct jinja_string *by,
                                 int64_t most); /* < 0: all */
/* Adds a text to one from the filter `safe`, as + does: characters of HTML are escaped. */
void jinja_put_escaped(struct jinja_text *to, const struct jinja_string *text);
/* Puts the arguments in the places of "%s" (how 1, the filter) or "{}" (how 0, the method). */
struct jinja_value jinja_format(struct jinja_run *run, const struct jinja_asked *asked);
struct jinja_value jinja_items(struct jinja_run *run, struct jinja_value dict);
/* subject.a.b or subject[0]: the path of map(attribute=...) and selectattr. */
struct jinja_value jinja_follow(struct jinja_run *run, struct jinja_value subject,
                                struct jinja_value path);
struct jinja_value jinja_sort(struct jinja_run *run, const struct jinja_asked *asked);
struct jinja_value jinja_sort_dict(struct jinja_run *run, const struct jinja_asked *asked);
/* how 0: the least, 1: the greatest. */
struct jinja_value jinja_extreme(struct jinja_run *run, const struct jinja_asked *asked);
struct jinja_json_form {
    const struct jinja_string *after_item, *after_key; /* NULL: those of Python */
    int indent; /* < 0: on one line */
    int ascii;  /* 1: other characters become \uXXXX */
};
struct jinja_value jinja_to_json(struct jinja_run *run, struct jinja_value subject,
                                 struct jinja_json_form form);
