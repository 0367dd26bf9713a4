# What the environment of a program contains, and who may add to it: S-29, S-37, A-08.
DOCUMENTED = ["PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX", "NODE_PATH", "npm_config_offline", "SANDBOX_INPUT_FILE", "SANDBOX_OUTPUT", "SANDBOX_FILES_DIR",
              "SKILL_NAME", "SKILL_VERSION", "SANDBOX_INPUT", "SKILL_INSTRUCTIONS"]

# As the kernel handed it over, before any interpreter could add to it.
entries = read("/proc/self/environ").decode().split("\0")[:-1]
names = [entry.split("=", 1)[0] for entry in entries]
verdicts["further"] = sorted(set(names) - set(DOCUMENTED))
verdicts["twice"] = sorted({name for name in names if names.count(name) > 1})
verdicts["path"] = os.environ["PATH"]
verdicts["input_is_the_file"] = os.environ["SANDBOX_INPUT"] == read(os.environ["SANDBOX_INPUT_FILE"]).decode()
verdicts["folder_first"] = [entry for entry in sys.path[1:] if os.path.isdir(entry) and os.access(entry, os.W_OK)]
verdicts["hooks_ran"] = [module for module in ("sitecustomize", "usercustomize") if "hooked" in vars(sys.modules.get(module, os))]
conclude()
