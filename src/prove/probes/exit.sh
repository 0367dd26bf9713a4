exit 137
