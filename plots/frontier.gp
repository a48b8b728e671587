# frontier.gp - tokens a second of one user against tokens a second of the device, a panel for each
# length. A curve is one setting at all batch sizes.
columns = narrow ? 1 : (panel_count < 3 ? panel_count : (panel_count == 4 ? 2 : 3))
rows = int(ceil(panel_count / (1.0 * columns)))
eval key_plan(2, 20)
eval begin(rows * (narrow ? 7 : 7.6) + 0.45 * key_rows)
# LLaDA's blue darkens from curve to curve of a sweep; methods look the same in all figures.
look(k) = series_fill[k]
mark(k) = is_plain(k) ? 7 : variant(series_kind[k], series_number[k])
open(k) = is_plain(k) ? 6 : hollow(series_kind[k], series_number[k])
dash(k) = is_plain(k) || series_kind[k] == 1 ? 1 : series_number[k] % 5 + 1
set logscale xy 2
stats $points using 1 nooutput name 'x'
set xrange [x_min / 2.2 : x_max * 1.7]
if (columns > 2) {set xtics 2.0**-10, 4}
set yrange [device_range[1] : device_range[2]]
set format xy '%.0f'
set multiplot layout rows, columns margins char 9, char 2, char (4 + 1.3 * key_rows), char 2 \
    spacing char 8, char 6
unset key
do for [p = 1:panel_count] {
    set title (ok(panel_length[p]) ? sprintf('%g tokens', panel_length[p]) : '')
    set xlabel 'tokens per second of one user'
    unset ylabel
    if (p % columns == 1 || columns == 1) {set ylabel 'tokens per second of the device'}
    unset label
    if (p == 1) {
        eval key_series(0, 1)
        i = key_next
        set label i + 1 'equally fast, measured' at screen key_x(i), char key_y(i) \
            offset 1.5, -0.25 point pointtype 13 linecolor rgb '#202020'
        set label i + 2 'equally fast, at the limits' at screen key_x(i + 1), char key_y(i + 1) \
            offset 1.5, -0.25 point pointtype 12 linecolor rgb '#202020'
    }
    # The series of a panel are adjacent; gnuplot 5.4 crashes if all labels are missing.
    from = 1; to = 0
    do for [k = 1:series_count] {
        if (series_panel[k] == p) {from = to < 1 ? k : from; to = k}
    }
    plot for [k = from:to] $points index k - 1 \
            using 1:2 with lines \
            linecolor rgb look(k) linewidth 1.2 \
            dashtype dash(k), \
        for [k = from:to] $points index k - 1 \
            using ($4 == 0 ? $1 : NaN):2 with points \
            linecolor rgb look(k) \
            pointtype mark(k) \
            pointsize (series_kind[k] == 1 ? 0.9 : 0.5), \
        for [k = from:to] $points index k - 1 \
            using ($4 != 0 ? $1 : NaN):2 with points \
            linecolor rgb '#ffffff' pointtype open(k) + 1 \
            pointsize 0.65, \
        for [k = from:to] $points index k - 1 \
            using ($4 != 0 ? $1 : NaN):2 with points \
            linecolor rgb look(k) \
            pointtype open(k) pointsize 0.65, \
        for [k = from:to] $points index k - 1 \
            using ($5 != 0 ? $1 : NaN):2:(sprintf('%g', $3)) with labels \
            left offset character 0.6, 0.5 \
            textcolor rgb look(k), \
        for [i = 1:(crossing_count[p] > 0)] $crossings index p - 1 \
            using ($3 != 0 ? $1 : NaN):2:($1 / 1.05 - $1):($5 - $2) with vectors nohead \
            linecolor rgb grey linewidth 0.7, \
        for [i = 1:(crossing_count[p] > 0)] $crossings index p - 1 \
            using 1:2:($3 != 0 ? 0.8 : 1.25):(12 + $3) with points \
            pointsize variable pointtype variable linecolor rgb '#202020', \
        for [i = 1:(crossing_count[p] > 0)] $crossings index p - 1 \
            using ($1 / 1.05):5:4 with labels right offset character -0.3, 0 \
            textcolor rgb '#202020', \
        for [i = 1:tips(p)] $tips index p - 1 using 1:2:5 @tip
}
unset multiplot
unset output
