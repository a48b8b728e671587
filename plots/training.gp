# training.gp - a training run: loss, gradient norm, tokens a second and memory. Each of the four
# has a panel, each model a line.
eval begin(1.6 + (narrow ? 3.0 : 3.4) * panel_count)
set multiplot layout panel_count, 1 margins char 10, char 2, char 3.4, char 1.6 \
    spacing char 0, char 1.4
stats $points using 1 nooutput name 'seen'
set xrange [0:seen_max > 0 ? seen_max : 1]
set format x ''
do for [p = 1:panel_count] {
    c = int(panel_column[p])
    set ylabel panel_label[p]
    if (c > 3) {set yrange [0:*]} else {set yrange [*:*]}
    if (p == panel_count) {
        set format x '%.0s%c'
        set xlabel x_label
    }
    if (p == 1) {set key top right Left reverse samplen 2} else {unset key}
    plot for [k = 1:series_count] $points index k - 1 using 1:c with lines \
            linecolor rgb colour(series_kind[k]) linewidth 1.1 \
            dashtype kind_dash(series_kind[k]) title series_name[k], \
        for [k = 1:series_count] $points index k - 1 using 1:(c == 5 ? $6 : NaN) with lines \
            linecolor rgb colour(series_kind[k]) dashtype 2 linewidth 1.1, \
        for [k = 1:series_count] $points index k - 1 using 1:(c == 2 ? $7 : NaN) with points \
            linecolor rgb colour(series_kind[k]) pointtype 6 pointsize 0.7, \
        for [i = 1:tips(p)] $tips index p - 1 using 1:2:5 @tip
}
unset multiplot
unset output
