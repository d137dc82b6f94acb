"""What approximates trees and distributions where exact algorithms are lacking or take long."""
