/* look.h - the style sheets of the two pages, and the script of the page of all tables. A page
 * loads nothing from outside. */
#pragma once

extern const char look_style[];                /* style of both pages */
extern const char look_short[], look_tables[]; /* for the main page; for the tables */
/* Sorts a table by a click on a head, or Enter on it: numbers by `data-v`, missing ones last;
 * filters the rows of all tables by words; opens the section that a link names. */
extern const char look_script[];
