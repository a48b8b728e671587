/* look.h - the style sheets of the two pages, and the script of the page of all tables. A page
 * loads nothing from outside. */
#pragma once

extern const char look_style[];                /* style of both pages */
extern const char look_short[], look_tables[]; /* more style: of the main page; of all tables */
/* The script of the page of all tables. A click on the head of a column, or Enter on it, sorts the
 * table: numbers by the attribute `data-v`, missing numbers last. Words in the filter box select
 * rows of all tables. A link to a section opens the section. */
extern const char look_script[];
