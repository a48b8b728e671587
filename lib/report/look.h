/* look.h - how pages look: the style of both, and the script of the page of all tables. Nothing is
 * loaded from anywhere. */
#ifndef REPORT_LOOK_H
#define REPORT_LOOK_H

extern const char look_style[], look_short[], look_tables[]; /* of both; of one */
/* Sorts a table by a click on a head, or Enter on it: numbers by `data-v`, missing ones last;
 * filters the rows of all tables by words; opens the section that a link names. */
extern const char look_script[];

#endif
