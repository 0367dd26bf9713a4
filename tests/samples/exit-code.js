display('shown before the exit');
process.exit(3);
