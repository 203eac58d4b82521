"""What happens, told to persons while it happens: to each what they may see."""
