# fit.gp - the largest batch that fits each memory size; heat.gp draws. Hatched: nothing fits.
set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')
box_label = value_label
box_tic(v) = sprintf('%g', 2**v)
