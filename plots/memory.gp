# memory.gp - heat map of the memory at each batch size and length; heat.gp draws it. The colours
# are Viridis, from little to much.
set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')
box_label = value_label
box_tic(v) = v >= 30 ? sprintf('%.3g GiB', 2**(v - 30)) : \
    (v >= 20 ? sprintf('%.3g MiB', 2**(v - 20)) : sprintf('%.3g KiB', 2**(v - 10)))
