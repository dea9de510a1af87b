"""The backends that come with devicecore, a file each; registered in `devicecore.discovery`."""
