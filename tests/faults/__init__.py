"""What goes wrong around a program: interrupts, threads, forks, full disks, long lives. Mirrors no source folder."""
