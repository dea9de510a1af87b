"""Running the calls that a plan names on another device, in a program that stays as it is."""
