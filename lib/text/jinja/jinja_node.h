/* jinja_node.h - a parsed template: a tree of statements and expressions. */
#pragma once

#include "lib/text/jinja/jinja_lex.h"
#include "lib/text/jinja/jinja_value.h"

enum jinja_node_kind {
    /* expressions */
    JINJA_CONST,    /* value */
    JINJA_NAME,     /* name */
    JINJA_LISTING,  /* value.kind: LIST or TUPLE; list: members */
    JINJA_MAPPING,  /* list: key, value, key, value, ... */
    JINJA_ATTRIBUTE, /* a.name */
    JINJA_ITEM,     /* a[b] */
    JINJA_SLICE,    /* a[list]: three nodes; an omitted one has kind CONST and value ABSENT */
    JINJA_CALL,     /* a(list) */
    JINJA_FILTER,   /* a | name(list) */
    JINJA_TEST,     /* a is name(list) */
    JINJA_KEYWORD,  /* name=a in a list of arguments or parameters */
    JINJA_NOT, JINJA_MINUS, JINJA_PLUS, /* operand: a */
    JINJA_AND, JINJA_OR, JINJA_ADD, JINJA_SUBTRACT, JINJA_MULTIPLY, JINJA_DIVIDE, JINJA_FLOOR,
    JINJA_MODULO, JINJA_POWER, JINJA_CONCAT, /* operands: a and b */
    JINJA_COMPARE,  /* a: the left side; list: an OPERAND for each comparison in the chain */
    JINJA_OPERAND,  /* name: the sign of the comparison; a: its right side */
    JINJA_CHOICE,   /* a if b else c; c NULL: undefined */
    /* statements; list: the body, other: the body of else */
    JINJA_PRINT,    /* a */
    JINJA_IF,       /* a: the condition; b: the next elif; only the last of them has `other` */
    JINJA_FOR,      /* for a in b if c */
    JINJA_SET,      /* a = b. b NULL: a = the text of the body after the filters in c */
    JINJA_MACRO_DEFINITION, /* name; other: parameters, nodes of kind KEYWORD, a: default or NULL */
    JINJA_FILTER_BODY, /* the body after the filters in c, a chain whose innermost node is CONST */
    JINJA_SCOPE,    /* the body of a generation tag */
    JINJA_BREAK, JINJA_CONTINUE
};
struct jinja_node {
    enum jinja_node_kind kind;
    int line, depth; /* depth: 1 + the depth of the deepest part */
    const struct jinja_string *name;
    struct jinja_value value;
    struct jinja_node *a, *b, *c;
    struct jinja_node *list, *other;
    struct jinja_node *next; /* the next node of the list that contains this node */
};

struct jinja_parser {
    struct jinja_work *w; /* the work of the template, whose memory has the nodes */
    const struct jinja_token *token; /* the current token */
    int depth, loops; /* nested jinja_enter() calls; loops around the current token */
};
/* The current token; END after a failure, so every loop over tokens ends. */
const struct jinja_token *jinja_peek(const struct jinja_parser *parser);
void jinja_step(struct jinja_parser *parser); /* goes to the next token */
/* 1: the current token is this sign, or this name. */
int jinja_at_sign(const struct jinja_parser *parser, const char *sign);
int jinja_at_name(const struct jinja_parser *parser, const char *name);
/* If the current token is this sign or name: goes to the next token and returns 1. Else returns
 * 0. */
int jinja_skip_sign(struct jinja_parser *parser, const char *sign);
int jinja_skip_name(struct jinja_parser *parser, const char *name);
/* Go to the next token. They fail if the current token is not this sign, or not a name. */
void jinja_expect_sign(struct jinja_parser *parser, const char *sign);
const struct jinja_string *jinja_expect_name(struct jinja_parser *parser);
/* Fails with "expected WANTED, got" and the current token. */
void jinja_unexpected(struct jinja_parser *parser, const char *wanted);
/* Makes a node with the parts a and b, which may be NULL. */
struct jinja_node *jinja_node(struct jinja_parser *parser, enum jinja_node_kind kind,
                              struct jinja_node *a, struct jinja_node *b);
/* Updates the depth of `around` for a new part. Fails if nodes are nested too deep. */
void jinja_deepen(struct jinja_parser *parser, struct jinja_node *around,
                  const struct jinja_node *part);
/* Appends a part to a list of `around` at *end; returns the new end. */
struct jinja_node **jinja_append(struct jinja_parser *parser, struct jinja_node *around,
                                 struct jinja_node **end, struct jinja_node *part);
/* Call these around the parsing of a nested expression or statement. jinja_enter returns 0 if the
 * nesting is too deep; call jinja_leave in any case. */
int jinja_enter(struct jinja_parser *parser);
void jinja_leave(struct jinja_parser *parser);

/* jinja_expression.c: parses an expression. choices 1: `a if b else c` is allowed. */
struct jinja_node *jinja_expression(struct jinja_parser *parser, int choices);
/* Parses an expression, or a tuple without brackets: a, b. */
struct jinja_node *jinja_tuple(struct jinja_parser *parser, int choices);
/* Parses the names to which a loop or set assigns. attribute 1: name.name is allowed. */
struct jinja_node *jinja_target(struct jinja_parser *parser, int attribute);
/* jinja_filter parses "name(...)", jinja_filters parses "| name(...) | name(...) ...". The result
 * applies these filters to node. */
struct jinja_node *jinja_filter(struct jinja_parser *parser, struct jinja_node *node);
struct jinja_node *jinja_filters(struct jinja_parser *parser, struct jinja_node *node);
/* Parses the parameters of a macro: (a, b=1). */
void jinja_parameters(struct jinja_parser *parser, struct jinja_node *macro);

/* jinja_statement.c: parses a whole template. */
struct jinja_node *jinja_statements(struct jinja_work *work, const struct jinja_token *tokens);
