/* escape.h - escapes texts of records for HTML, Markdown, LaTeX, CSV and links, so that a record
 * cannot put code or markup into a page. Each function appends to *text. Texts (but not links) are
 * cut at ESCAPE_MAX characters, and their control characters are replaced (display.h). */
#pragma once

#include "lib/base/buf.h"

enum { ESCAPE_MAX = 4000 };

void escape_html(struct buf *text, const char *bytes);     /* between tags or inside quotes */
void escape_markdown(struct buf *text, const char *bytes); /* inside a line or at its start */
/* For a paragraph or a cell of a table. Characters beyond ASCII without a TeX name stay UTF-8. */
void escape_latex(struct buf *text, const char *bytes);
/* One field, quoted if necessary. A text that a spreadsheet would read as a formula gets an
 * apostrophe in front. */
void escape_csv(struct buf *text, const char *bytes);
/* A relative file name as a link. A colon is escaped, so that no part of the name is read as a
 * scheme. */
void escape_link(struct buf *text, const char *bytes);
/* The content of a file as a link: "data:text/csv;charset=utf-8,...". type: "text/csv". */
void escape_data_link(struct buf *text, const char *type, const char *bytes);
