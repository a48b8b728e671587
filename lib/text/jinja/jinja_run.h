/* jinja_run.h - runs a template: variables, arguments, and the known filters, tests, methods and
 * functions. */
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
    struct jinja_scope *around; /* the scope of the definition, whose variables the body sees */
};
enum { JINJA_ARGUMENTS_MAX = 16, JINJA_BOUND_MAX = 4 };
struct jinja_arguments {
    size_t n;
    struct {
        const struct jinja_string *name; /* NULL: the argument is given by position */
        struct jinja_value value;
    } v[JINJA_ARGUMENTS_MAX];
};
struct jinja_run {
    struct jinja_work *w;
    struct jinja_scope *scope;
    int calls; /* number of macros that run inside each other now */
    struct jinja_value (*call)(struct jinja_run *run, const struct jinja_macro *macro,
                               const struct jinja_arguments *arguments);
};

/* Sets a variable of the current scope. */
void jinja_assign(struct jinja_run *run, const struct jinja_string *name, struct jinja_value value);
/* A call of a filter, method or function. */
struct jinja_asked {
    struct jinja_value x; /* the value to which a filter or method is applied */
    struct jinja_value a[JINJA_BOUND_MAX]; /* arguments in the order of the names in its row */
    const struct jinja_arguments *all;     /* all arguments as they were given */
    int how; /* a number from its row, for functions that serve several rows */
};
/* The argument for the parameter `name`, which has this place among the parameters; NULL: no
 * argument is given for it. */
const struct jinja_value *jinja_argument(const struct jinja_arguments *arguments, size_t place,
                                         const struct jinja_string *name);
/* to[i] = the argument for the i-th word of `names`; ABSENT if none is given. In "old new ?count"
 * the words before the "?" are required, the others are optional. Fails if a required argument is
 * missing, or if an argument fits no word; the message names `who`. */
void jinja_bind(struct jinja_run *run, const struct jinja_string *who,
                const struct jinja_arguments *arguments, const char *names,
                struct jinja_value to[JINJA_BOUND_MAX]);
/* The number in an argument; `standard` if the argument is ABSENT. Fails for other values. */
int64_t jinja_integer(struct jinja_run *run, struct jinja_value value, int64_t standard);

/* Runs the statements of a template; *out gets the text that they write. */
void jinja_run(struct jinja_work *work, const struct jinja_node *all, const json_t *variables,
               struct jinja_text *out);
/* The value of an expression. */
struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node);
/* value.name and value[key]; UNDEFINED if value has no such member. */
struct jinja_value jinja_attribute(struct jinja_run *run, struct jinja_value value,
                                   const struct jinja_string *name);
struct jinja_value jinja_item(struct jinja_run *run, struct jinja_value value,
                              struct jinja_value key);
/* value[a:b:c] with a, b, c in given[]; ABSENT for an omitted one. */
struct jinja_value jinja_slice(struct jinja_run *run, struct jinja_value value,
                               const struct jinja_value given[3]);

/* These functions apply a filter, test, method or function by its name. They fail if the name is
 * not known. */
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
/* 1: the value has a method of this name. */
int jinja_is_method(struct jinja_value subject, const struct jinja_string *name);
int jinja_is_function(const struct jinja_string *name);

/* Functions that both filters and methods use. */
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_CAPITAL };
struct jinja_value jinja_change_case(struct jinja_run *run, const struct jinja_string *bytes,
                                     enum jinja_case to);
/* Removes letters at the ends of a text. sides: 1: left, 2: right, 3: both. letters NULL: white
 * space. */
struct jinja_value jinja_strip(struct jinja_run *run, const struct jinja_string *text, int sides,
                               const struct jinja_string *letters);
struct jinja_value jinja_replace(struct jinja_run *run, const struct jinja_string *bytes,
                                 const struct jinja_string *old, const struct jinja_string *by,
                                 int64_t most); /* < 0: all */
/* Appends a text with HTML characters escaped, as + does next to a result of the filter `safe`. */
void jinja_put_escaped(struct jinja_text *to, const struct jinja_string *text);
/* Replaces each "%s" (how 1: the filter) or "{}" (how 0: the method) by the next argument. */
struct jinja_value jinja_format(struct jinja_run *run, const struct jinja_asked *asked);
/* The list of (key, value) of a mapping; an empty list for other values. */
struct jinja_value jinja_items(struct jinja_run *run, struct jinja_value dict);
/* The member of subject at a path, as in map(attribute=...): subject.a.b, or subject[0]. */
struct jinja_value jinja_follow(struct jinja_run *run, struct jinja_value subject,
                                struct jinja_value path);
struct jinja_value jinja_sort(struct jinja_run *run, const struct jinja_asked *asked);
struct jinja_value jinja_sort_dict(struct jinja_run *run, const struct jinja_asked *asked);
/* The least member (how 0) or the greatest member (how 1). */
struct jinja_value jinja_extreme(struct jinja_run *run, const struct jinja_asked *asked);
struct jinja_json_form {
    const struct jinja_string *after_item, *after_key; /* separators; NULL: Python's defaults */
    int indent; /* spaces per level; < 0: all on one line */
    int ascii;  /* 1: characters beyond ASCII become \uXXXX */
};
struct jinja_value jinja_to_json(struct jinja_run *run, struct jinja_value subject,
                                 struct jinja_json_form form);
