"""Helpers of the experiment with few trees and with none."""
