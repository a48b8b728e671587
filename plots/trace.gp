# trace.gp - how an answer is filled, pass by pass: slots across, passes downwards. All panels have
# the same axes. A text terminal has no areas, so a digit shows the confidence of a commit in
# tenths.
across = narrow || dumb ? 1 : panel_count
down = int(ceil(panel_count / (1.0 * across)))
tall = pass_count < 12 ? 2.6 : (pass_count < 40 ? 3.6 : (narrow ? 4.4 : 5.6))
height = dumb ? panel_count * (pass_count + 9) / 3.2 : down * (tall + 1.6) + 2.1
eval begin(height)
set palette defined (0 '#FDE725', 0.25 '#5EC962', 0.5 '#21918C', 0.75 '#3B528B', 1 '#440154')
set cbrange [0:1]
unset grid; unset key
set border 3 linewidth 0.7 linecolor rgb grey
set xrange [-0.5:slot_count - 0.5]
set yrange [pass_count + 0.5:0.5]
set xlabel 'slot of the answer' offset 0,0.4
set ytics (); set ytics add (1)
step = pass_count > 200 ? 64 : (pass_count > 80 ? 32 : (pass_count > 30 ? 16 : \
    (pass_count > 12 ? 8 : 4)))
set ytics add (1 1)
do for [y = step:int(pass_count):step] {set ytics add (sprintf('%d', y) y)}
set colorbox horizontal noborder \
    user origin screen (narrow ? 0.5 : 0.66), char 1.4 size screen (narrow ? 0.44 : 0.3), char 0.7
set cbtics 0, 0.5, 1 scale 0.3 offset 0,0.7
unset cblabel
if (dumb) {unset colorbox}
set label 1 (dumb ? '' : 'confidence at the commit') \
    at screen (narrow ? 0.48 : 0.645), char 1.75 right \
    textcolor rgb '#202020'
set multiplot layout down, across margins char 8, char 1.5, char (dumb ? 3 : 5.9), char 2.8 \
    spacing char 6, char 6.6
do for [p = 1:panel_count] {
    set title panel_title[p] . "\n" . sprintf('%d pass%s', panel_passes[p], \
        panel_passes[p] > 1 ? 'es' : '')
    unset ylabel
    if (p % across == 1 || across == 1) {set ylabel 'pass'}
    if (p > 1) {unset colorbox; unset label 1}
    unset object; unset arrow
    if (!dumb) {
        set object 1 rectangle from -0.5, 0.5 to slot_count - 0.5, panel_passes[p] + 0.5 behind \
            fillcolor rgb '#F2F2F2' fillstyle solid noborder
        if (block_length > 0) {
            do for [x = 1:int(ceil(slot_count / block_length)) - 1] {
                set arrow x from x * block_length - 0.5, 0.5 \
                    to x * block_length - 0.5, panel_passes[p] + 0.5 nohead front \
                    linecolor rgb grey linewidth 0.5
            }
        }
    }
    # Layers, from the lowest: the passes after a commit in which the slot stays final (light grey);
    # the pass of the commit (dark grey), and over it the colour of the confidence if that is known;
    # crosses where a slot is masked again; texts for a pointer.
    if (dumb) {
        # gnuplot 5.4 crashes if all points are missing
        if (panel_again[p] > 0) {
            plot $spans index p - 1 using 1:2:(strcol(5)) with labels, \
                $again index p - 1 using 1:2 with points pointtype 'x'
        } else {
            plot $spans index p - 1 using 1:2:(strcol(5)) with labels
        }
    } else {
        plot $spans index p - 1 using 1:2:($1 - 0.51):($1 + 0.51):($2 + 0.5):($3 + 0.5) \
                with boxxyerror fillstyle solid noborder linecolor rgb '#C4C4C4', \
            $spans index p - 1 using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) \
                with boxxyerror fillstyle solid noborder linecolor rgb '#8A8A8A', \
            $spans index p - 1 \
                using (ok($4) ? $1 : NaN):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):4 \
                with boxxyerror fillstyle solid noborder linecolor palette, \
            $again index p - 1 using 1:2 with points pointtype 2 pointsize 0.5 \
                linecolor rgb '#D55E00' linewidth 1.2, \
            for [i = 1:tips(p)] $tips index p - 1 using 1:2:('[') @tip, \
            for [i = 1:tips(p)] $tips index p - 1 using 3:4:5 @tip
    }
}
unset multiplot
unset output
