/* jinja_node.h - a parsed template: a tree of statements and expressions. */
#pragma once

#include "lib/text/jinja/jinja_lex.h"
#include "lib/text/jinja/jinja_value.h"

enum jinja_node_kind {
    /* expressions */
    JINJA_CONST,    /* value */
    JINJA_NAME,     /* name */
    JINJA_LISTING,  /* value.kind LIST or TUPLE; list: members */
    JINJA_MAPPING,  /* list: keys and values by turns */
    JINJA_ATTRIBUTE, /* a.name */
    JINJA_ITEM,     /* a[b] */
    JINJA_SLICE,    /* a[list]: three nodes, those left out have kind CONST and value ABSENT */
    JINJA_CALL,     /* a(list) */
    JINJA_FILTER,   /* a | name(list) */
    JINJA_TEST,     /* a is name(list) */
    JINJA_KEYWORD,  /* name=a in a list of arguments or parameters */
    JINJA_NOT, JINJA_MINUS, JINJA_PLUS, /* of a */
    JINJA_AND, JINJA_OR, JINJA_ADD, JINJA_SUBTRACT, JINJA_MULTIPLY, JINJA_DIVIDE, JINJA_FLOOR,
    JINJA_MODULO, JINJA_POWER, JINJA_CONCAT, /* of a and b */
    JINJA_COMPARE,  /* a; list: nodes of kind OPERAND, name: the sign, a: the right side */
    JINJA_OPERAND,
    JINJA_CHOICE,   /* a if b else c; c NULL: undefined */
    /* statements; list: the body, other: the body of else */
    JINJA_PRINT,    /* a */
    JINJA_IF,       /* a; b: the next elif; other: in the last of them */
    JINJA_FOR,      /* for a in b if c */
    JINJA_SET,      /* a = b; b NULL: the body through the filters around a CONST in c */
    JINJA_MACRO_DEFINITION, /* name; other: parameters, nodes of kind KEYWORD, a: default or NULL */
    JINJA_FILTER_BODY, /* the body through the filters in c */
    JINJA_SCOPE,    /* the body of a generation tag */
    JINJA_BREAK, JINJA_CONTINUE
};
struct jinja_node {
    enum jinja_node_kind kind;
    int line, depth; /* 1 + that of the deepest part */
    const struct jinja_string *name;
    struct jinja_value value;
    struct jinja_node *a, *b, *c;
    struct jinja_node *list, *other;
    struct jinja_node *next; /* in the list around it */
};

/* The parser; work is the template's own. */
struct jinja_parser {
    struct jinja_work *w;
    const struct jinja_token *token;
    int depth, loops;
};
/* The current token; END after a failure, so every loop over tokens ends. */
const struct jinja_token *jinja_peek(const struct jinja_parser *parser);
void jinja_step(struct jinja_parser *parser);
int jinja_at_sign(const struct jinja_parser *parser, const char *sign);
int jinja_at_name(const struct jinja_parser *parser, const char *name);
/* Steps over it; 0: it is not there. */
int jinja_skip_sign(struct jinja_parser *parser, const char *sign);
int jinja_skip_name(struct jinja_parser *parser, const char *name);
void jinja_expect_sign(struct jinja_parser *parser, const char *sign);
const struct jinja_string *jinja_expect_name(struct jinja_parser *parser);
void jinja_unexpected(struct jinja_parser *parser, const char *wanted);
/* A node with its parts. */
struct jinja_node *jinja_node(struct jinja_parser *parser, enum jinja_node_kind kind,
                              struct jinja_node *a, struct jinja_node *b);
void jinja_deepen(struct jinja_parser *parser, struct jinja_node *around,
                  const struct jinja_node *part);
/* Puts a part at *end of a list; returns the new end. */
struct jinja_node **jinja_append(struct jinja_parser *parser, struct jinja_node *around,
                                 struct jinja_node **end, struct jinja_node *part);
int jinja_enter(struct jinja_parser *parser); /* 0: too deep; call jinja_leave in any case */
void jinja_leave(struct jinja_parser *parser);

/* jinja_expression.c. choices: 1: also `a if b else c`. */
struct jinja_node *jinja_expression(struct jinja_parser *parser, int choices);
/* jinja_expression(), and also a tuple without brackets: a, b. */
struct jinja_node *jinja_tuple(struct jinja_parser *parser, int choices);
/* Names that a loop or set assigns to; attribute: 1: also name.name. */
struct jinja_node *jinja_target(struct jinja_parser *parser, int attribute);
/* jinja_filter: filter(...) around node; the current token is its name. jinja_filters: | filter |
 * filter ... around node. */
struct jinja_node *jinja_filter(struct jinja_parser *parser, struct jinja_node *node);
struct jinja_node *jinja_filters(struct jinja_parser *parser, struct jinja_node *node);
/* (a, b=1): the parameters of a macro. */
void jinja_parameters(struct jinja_parser *parser, struct jinja_node *macro);

/* jinja_statement.c: a whole template. */
struct jinja_node *jinja_statements(struct jinja_work *work, const struct jinja_token *tokens);
