# methods.gp - decoding methods, a row each: speed-up on the left, change of the accuracy on the
# right. The fastest method is on top.
eval begin(2.2 + 0.42 * method_count)
longest = 0
do for [k = 1:method_count] {
    longest = strlen(method_name[k]) > longest ? strlen(method_name[k]) : longest
}
name_share = (narrow ? 0.0205 : 0.0115) * longest + 0.02
middle = name_share + (1 - name_share) * 0.62
method_number(k) = number(method_kind[k], method_own[k])
method_look(k) = hue(method_kind[k], method_number(k))
method_mark(k) = variant(method_kind[k], method_number(k))
set bars small
set multiplot
set yrange [0.4:method_count + 0.6]
set grid noytics
set tmargin 1; set bmargin 3.4
set ytics ()
do for [k = 1:method_count] {set ytics add (method_name[k] k)}
set ytics scale 0
set logscale x 2
set xrange [speed_lo / 1.25:speed_hi * 1.25]
eval log_tics('x', speed_lo / 1.25, speed_hi * 1.25)
set lmargin at screen name_share
set rmargin at screen middle - 0.02
set xlabel (narrow ? 'speed-up' : 'speed-up (times as fast)')
set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb grey dashtype 2 back
plot $points using 9:1 with points pointtype 12 pointsize 0.7 linecolor rgb grey, \
    for [k = 1:method_count] $points using 3:1:4:5 every ::k - 1::k - 1 with xerrorbars \
        pointtype method_mark(k) pointsize 0.6 linewidth 1 linecolor rgb method_look(k), \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset arrow 1
unset logscale x
unset ytics
reach = points_hi - points_lo > 2 ? points_hi - points_lo : 2
set xrange [points_lo - 0.08 * reach:points_hi + 0.08 * reach]
# the right axis has ticks at 1, 2 or 5 times a power of ten, with room for five letters at each
# tick
tick = 1.16 * reach * 5 / ((0.96 - middle) * key_room)
tens = 10**floor(log10(tick))
tick = tens * (tick <= tens ? 1 : (tick <= 2 * tens ? 2 : (tick <= 5 * tens ? 5 : 10)))
set xtics tick
set lmargin at screen middle + 0.02
set rmargin at screen 0.98
set xlabel (narrow ? 'accuracy, points' : 'change of the accuracy (points)')
set arrow 2 from 0, graph 0 to 0, graph 1 nohead linecolor rgb grey dashtype 2 back
plot for [k = 1:method_count] $points using 6:1:7:8 every ::k - 1::k - 1 with xerrorbars \
        pointtype method_mark(k) pointsize 0.6 linewidth 1 linecolor rgb method_look(k), \
    for [i = 1:tips(2)] $tips index 1 using 1:2:5 @tip
unset multiplot
unset output
