# pruning.gp - perplexity (top) and accuracy (bottom) of pruned models against the share of removed
# parameters; a column of panels for each source model, a curve for each score.
eval begin(narrow ? 5.2 * 2 * panel_count + 1 : 12.5)
names = 0
do for [k = 1:series_count] {names = names + series_first[k]}
columns = narrow ? 1 : panel_count
stats $points using 1 nooutput name 'x'
stats $points using 3 nooutput name 'a'
stats $points using 4 nooutput name 'b'
stats $points using 6 nooutput name 'c'
stats $points using 7 nooutput name 'd'
reach = d_max - c_min > 2 ? d_max - c_min : 2
set xrange [-0.03 * x_max:x_max * 1.05]
set multiplot layout (narrow ? 2 * panel_count : 2), columns \
    margins char 9, char 2, char 5.4, char 2 spacing char 9, char 4.6
set xlabel 'parameters removed (%)'
set key off
do for [i = 1:2 * panel_count] {
    row = narrow ? 1 + (i - 1) % 2 : 1 + (i - 1) / panel_count
    p = narrow ? 1 + (i - 1) / 2 : 1 + (i - 1) % panel_count
    unset label; unset arrow; unset logscale y; set ytics autofreq; unset title
    if (row == 1) {set title panel_title[p]}
    if (i == 1) {
        at = 0
        do for [k = 1:series_count] {
            if (series_first[k]) {
                at = at + 1
                set label at series_name[k] at screen 0.06 + (at - 1) * 0.94 / names, char 0.9 \
                    offset 1.5, -0.2 point pointtype variant(0, series_variant[k]) pointsize 0.6 \
                    linecolor rgb hue(0, series_variant[k])
            }
        }
    }
    if (row == 1) {
        set logscale y
        set yrange [a_min / 1.1:b_max * 1.1]
        eval log_tics('y', a_min / 1.1, b_max * 1.1)
        set ylabel 'perplexity / perplexity of the source'
        set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead back linecolor rgb grey \
            linewidth 0.6 dashtype 3
    } else {
        set yrange [c_min - 0.06 * reach:d_max + 0.06 * reach]
        set ylabel 'change of the accuracy (points)'
        set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead back linecolor rgb grey \
            linewidth 0.6 dashtype 3
    }
    c = row == 1 ? 2 : 5
    plot for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):c with lines \
            linecolor rgb hue(0, series_variant[k]) linewidth 1.2 \
            dashtype dash(k), \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):c:c + 1:c + 2 with yerrorbars \
            linecolor rgb hue(0, series_variant[k]) linewidth 0.9 pointtype 0 pointsize 0, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):c with points \
            linecolor rgb hue(0, series_variant[k]) pointtype variant(0, series_variant[k]) \
            pointsize 0.6, \
        for [i = 1:tips(row == 1 ? p : p + 4)] $tips index p - (row == 1 ? 1 : -3) using 1:2:5 @tip
}
unset multiplot
unset output
