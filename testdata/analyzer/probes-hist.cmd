probes --hist -e uprobe:* tools.tape
